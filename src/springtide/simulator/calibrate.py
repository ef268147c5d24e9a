"""Costs from epochs that were really run, and how well a simulation of the same rows agrees with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import numpy as np

from springtide.metrics.report import EpochReport, OperatorReport
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT
from springtide.simulator.model.arrivals import Profile, Steps
from springtide.simulator.scenario.fields import BadScenario
from springtide.simulator.scenario.scenario import (
    ClusterModel,
    ControlModel,
    FailureModel,
    FlowModel,
    MigrationModel,
    OperatorModel,
    Scenario,
    SourceModel,
    StateModel,
)
from springtide.simulator.simulate import simulate

COLD = 5
"""Epochs left out at the beginning of a run, as they are slower; a fifth of a short run."""
VARIED = 0.1
"""Rows an epoch must differ by this, relative, to tell what a row takes from what an epoch takes anyway."""
LEAST = 3


@dataclass(frozen=True)
class Step:
    """What one keyed step costs."""

    service_s: float
    selectivity: float
    rows_a_row: float
    """Rows that reach it for each one that the app takes from its sources."""
    keys: int
    key_bytes: float
    instances: int


@dataclass(frozen=True)
class Fit:
    """What an app costs."""

    epochs: int
    overhead_s: float
    steps: Mapping[str, Step]


def fit(reports: Sequence[EpochReport]) -> Fit:
    """The costs that explain these epochs best."""
    warm = _warm(reports)
    names = [operator.step for operator in warm[-1].operators]
    steps = {name: _step([(r, o) for r in warm for o in r.operators if o.step == name]) for name in names}
    rests = []
    for report in warm:
        working_s = sum(steps[o.step].service_s * _most_rows(o) for o in report.operators if o.step in steps)
        rests.append(report.phases.total_s - working_s)
    return Fit(len(warm), max(0.0, median(rests)), steps)


def calibrated(scenario: Scenario, found: Fit) -> Scenario:
    """The scenario with measured costs where it has steps of the same name."""
    if not any(operator.name in found.steps for operator in scenario.operators):
        mine = [operator.name for operator in scenario.operators]
        raise BadScenario("operators", f"one named as a step of the app: {', '.join(found.steps)}", mine)
    operators = []
    for operator in scenario.operators:
        step = found.steps.get(operator.name)
        if step is not None:
            operator = replace(operator, service_s=step.service_s, selectivity=step.selectivity)
            operator = replace(operator, keys=step.keys, key_bytes=step.key_bytes)
        operators.append(operator)
    return replace(scenario, operators=tuple(operators), flow=replace(scenario.flow, overhead_s=found.overhead_s))


def validate(reports: Sequence[EpochReport], found: Fit) -> dict[str, tuple[float, float]]:
    """By figure: as recorded, and as simulated with the same rows falling due at the same times."""
    warm = _warm(reports)
    began_s = warm[0].ended_at - warm[0].phases.total_s
    run = simulate(_recorded(warm, found, began_s), "none", None)
    took_s = warm[-1].ended_at - began_s
    recorded_s = [report.phases.total_s for report in warm]
    recorded_rows = sum(report.rows_in for report in warm)
    figures = {
        "rows a second": (recorded_rows / took_s, run.totals.processed / len(found.steps) / took_s),
        "seconds an epoch, median": (median(recorded_s), median(run.epochs_s)),
        "seconds an epoch, mean": (mean(recorded_s), mean(run.epochs_s)),
    }
    lags = [report.lag_rows for report in warm if report.lag_rows is not None]
    if lags:
        figures["rows behind"] = (mean(lags), run.lag_rows)
    return figures


def _recorded(warm: Sequence[EpochReport], found: Fit, began_s: float) -> Scenario:
    """The epochs' rows as a source, and their steps side by side."""
    due, at_s, taken, points = 0, 0.0, 0, []
    for report in warm:
        taken += report.rows_in
        until_s, until = report.ended_at - began_s, taken + (report.lag_rows or 0)
        if until_s > at_s:
            points.append((at_s, max(0.0, (until - due) / (until_s - at_s))))
            due, at_s = until, until_s
    operators = tuple(
        OperatorModel(name, ("rows",), step.service_s * step.rows_a_row) for name, step in found.steps.items()
    )
    slots = max(step.instances for step in found.steps.values())
    apart = [b.ended_at - a.ended_at for a, b in pairwise(warm)]
    return Scenario(
        name=warm[0].app,
        title=warm[0].app,
        duration_s=at_s,
        seed=0,
        flow=FlowModel(overhead_s=found.overhead_s, trigger_s=max(1e-3, min(apart))),
        sources=(SourceModel("rows", Profile(Steps(tuple(points)))),),
        operators=operators,
        cluster=ClusterModel(workers=1, slots=slots),
        failures=FailureModel(),
        state=StateModel(replicas=0),
        migration=MigrationModel(DEFAULT, Options()),
        control=ControlModel(("none",)),
    )


def _warm(reports: Sequence[EpochReport]) -> list[EpochReport]:
    """Epochs that ran as usual, with rows."""
    sound = [r for r in reports if r.rows_in > 0 and not r.replayed and not r.retries and r.operators]
    warm = sound[min(COLD, len(sound) // 5) :]
    if len(warm) < LEAST:
        raise BadScenario("the calibration", f"{LEAST} epochs or more with rows in keyed steps", len(warm))
    return warm


def _step(epochs: Sequence[tuple[EpochReport, OperatorReport]]) -> Step:
    _, last = epochs[-1]
    rows = np.array([operator.rows_in for _, operator in epochs], dtype=np.float64)
    busy_s = np.array([_busy_s(operator) for _, operator in epochs])
    rows_in = float(rows.sum()) or 1.0
    return Step(
        service_s=_slope(rows, busy_s),
        selectivity=sum(operator.rows_out for _, operator in epochs) / rows_in,
        rows_a_row=rows_in / max(1, sum(report.rows_in for report, _ in epochs)),
        keys=last.state_rows,
        key_bytes=last.state_bytes / last.state_rows if last.state_rows else 0.0,
        instances=max(1, len(last.instances)),
    )


def _slope(rows: np.ndarray, busy_s: np.ndarray) -> float:
    """Time on one row: by how it grows with the rows if they vary, else all time over all rows."""
    if rows.std() > VARIED * rows.mean():
        slope = float(np.polyfit(rows, busy_s, 1)[0])
        if slope > 0:
            return slope
    return max(1e-9, float(busy_s.sum() / max(1.0, rows.sum())))


def _busy_s(operator: OperatorReport) -> float:
    return operator.map_busy_s + sum(instance.useful_s for instance in operator.instances)


def _most_rows(operator: OperatorReport) -> float:
    """Rows of the instance that has most, before equal keys were combined."""
    each = [instance.rows_in for instance in operator.instances]
    return operator.rows_in * max(each, default=1) / (sum(each) or 1)
