"""A journey: one dataflow on workers that are changed again and again, each time by a strategy, and measured."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median

from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.trial import cluster_session, wait_for
from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.store import open_store
from springtide.connectors import sinks, sources
from springtide.control.migration_log import course_of
from springtide.engine.lifecycle.running import Running
from springtide.errors import BadValue
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures, measure
from springtide.metrics.migration.steadiness import Steadiness
from springtide.metrics.report import EpochReport
from springtide.migration.step import Options
from springtide.workloads.dataflow_app import SERVICE_S, build
from springtide.workloads.dataflow_oracle import expected, faults, keys_of, miscounted
from springtide.workloads.dataflows import DATAFLOWS, EVENTS_S, Dataflow, linear

IN, OUT = "in", "out"
MOST_WORKERS = 2
"""Each has an instance of every task, and a core of this machine to itself; more of them only share it."""
KEYS = 64
DURABLE_S = 30
"""From one periodic checkpoint to the next, as `restart` goes back to them; asked for in the second third of it."""
TRIGGER_S, TRIGGER_LEVEL_S = 2.0, 0.4
"""From one epoch to the next, and for each level of tasks: an epoch takes about half of it, as an app with reserves."""
SLICES_A_TASK = 16
"""Of each task, in one epoch by `progressive`: half of all, as they go to a second worker, take four epochs."""
WAY_BACK = "handover"
"""How workers come back between two migrations in one direction."""
COLD_EPOCHS = 2
"""The first ones take longer, and are not part of any calm."""
MIDST = 0.3
"""How much of an epoch is over when a migration is asked for."""
BUSY = 0.25
PATIENCE = 2.0
"""How often the window may pass before an output that is not steady counts as such."""


def dataflow_of(name: str) -> Dataflow:
    """One of the five, or `linear-50` and the like."""
    if name in DATAFLOWS:
        return DATAFLOWS[name]
    kind, _, tasks = name.partition("-")
    if kind == "linear" and tasks.isdecimal() and int(tasks):
        return linear(int(tasks))
    raise BadValue(f"expected a dataflow of {', '.join(DATAFLOWS)} or linear-N, got {name!r}")


def workers_of(dataflow: Dataflow, most: int = MOST_WORKERS) -> tuple[int, int]:
    """Few and many: half the machines of table 1 and all of them, as far as this machine can host them."""
    many = max(2, min(dataflow.sizes().default_vms, most))
    return ceil(many / 2), many


def service_of(dataflow: Dataflow) -> float:
    """Seconds of work for each event, so that one worker, task by task, is busy with it for a quarter of the time."""
    events_s = sum(dataflow.input_events_s(task.name) for task in dataflow.tasks)
    return min(SERVICE_S, BUSY / events_s)


def trigger_of(dataflow: Dataflow) -> float:
    """The least time between the starts of two epochs."""
    return TRIGGER_S + TRIGGER_LEVEL_S * len(dataflow.critical_path)


@dataclass(frozen=True)
class Leg:
    """One migration to measure, or one that only leads back."""

    strategy: str
    direction: str
    measured: bool = True


@dataclass(frozen=True)
class Passed:
    """A migration that was measured, and the epochs around it."""

    leg: Leg
    course: Course
    measures: MigrationMeasures
    median_epoch_s: float
    """From one output to the next, in the calm before."""
    reports: tuple[EpochReport, ...]

    @property
    def steady_at(self) -> float | None:
        """When the migration was over and the output steady."""
        seconds, ended_at = self.measures.stabilise_s, self.course.ended_at
        return None if seconds is None or ended_at is None else max(ended_at, self.course.asked_at + seconds)


@dataclass(frozen=True)
class Journey:
    """What a dataflow went through, and whether anything of it shows in its results."""

    dataflow: str
    passed: tuple[Passed, ...]
    lost: int
    duplicated: int
    miscounted: int
    """Counts of tasks that are wrong."""

    @property
    def median_epoch_s(self) -> float:
        """From one output to the next, in all calms: one may still be short, as what waited was caught up with."""
        return median(passed.median_epoch_s for passed in self.passed)


@dataclass(frozen=True)
class Voyage:
    """How a journey is made."""

    directory: Path
    dataflow: str
    legs: tuple[Leg, ...]
    few: int
    many: int
    calm_epochs: int = 6
    window_s: float = 60.0
    """How long the output has to be steady."""
    trigger_s: float | None = None
    """The least time between the starts of two epochs; None: enough to have reserves."""
    service_s: float | None = None
    """Of a task, for each event; None: as long as the dataflow can hold with ease."""


def legs(strategies: Sequence[str], direction: str | None) -> tuple[Leg, ...]:
    """Each strategy in one direction, with a way back that is not measured; or in both, there and back."""
    if direction is None:
        return tuple(Leg(strategy, way) for strategy in strategies for way in (OUT, IN))
    back = Leg(WAY_BACK, OUT if direction == IN else IN, measured=False)
    return tuple(leg for strategy in strategies for leg in (Leg(strategy, direction), back))[:-1]


def travel(voyage: Voyage) -> Journey:
    """Make a journey in this process."""
    dataflow = dataflow_of(voyage.dataflow)
    start = voyage.few if voyage.legs[0].direction == OUT else voyage.many
    trigger_s = trigger_of(dataflow) if voyage.trigger_s is None else voyage.trigger_s
    source, sink = sources.generator(EVENTS_S, keys=KEYS, seed=3), sinks.memory()
    app = build(dataflow, source=source, sink=sink, service_s=voyage.service_s or service_of(dataflow))
    running = app.start(
        cluster_session(start),
        checkpoint=str(voyage.directory / "checkpoint"),
        local=str(voyage.directory / "local"),
        workers=start,
        replicas=0,
        durable_every=f"{DURABLE_S} seconds",
        trigger_s=trigger_s,
        keep_reports=ALL_REPORTS,
    )
    try:
        passed: list[Passed] = []
        for leg in voyage.legs:
            passed.append(_pass(running, leg, voyage, passed[-1] if passed else None))
    finally:
        reports = running.stop()
    events = sum(report.rows_in for report in reports if not report.replayed)
    keys = keys_of(source, events)
    oracle = expected(dataflow, keys, keys.__getitem__)
    found = faults(sink.rows(), oracle)
    measured = tuple(each for each in passed if each.leg.measured)
    return Journey(voyage.dataflow, measured, *found, miscounted(sink.rows(), oracle))


def _pass(running: Running, leg: Leg, voyage: Voyage, before: Passed | None) -> Passed:
    """A calm, the migration, and what comes after it until the output is steady or will not become so."""
    first = _calm(running, leg, voyage, before)
    usual = _usual_s(running.reports[max(0, first - 1) :])
    _wait_for_midst(running, median(report.phases.total_s for report in running.reports[first:]))
    course, ended_at = _migrated(running, leg, voyage)
    given_s = dataflow_of(voyage.dataflow).copies_at_sink * EVENTS_S
    steadiness = Steadiness(voyage.window_s, min(10.0, voyage.window_s), expected_rows_per_s=given_s)

    def over() -> bool:
        now = running.reports
        if now[-1].ended_at <= ended_at:
            return False
        found = measure(course, now[first:], steadiness)
        if found.restore_s is None:
            return False
        restored_at = max(ended_at, course.asked_at + found.restore_s)
        late = now[-1].ended_at > restored_at + PATIENCE * voyage.window_s
        return not leg.measured or late or found.stabilise_s is not None

    wait_for(running, over)
    reports = tuple(running.reports[first:])
    return Passed(leg, course, measure(course, reports, steadiness), usual, reports)


def _calm(running: Running, leg: Leg, voyage: Voyage, before: Passed | None) -> int:
    """Wait for a calm; its first epoch. What was steady after the migration before is part of it."""
    first = max(COLD_EPOCHS, len(running.reports))
    if before is not None and (steady_at := before.steady_at) is not None:
        first = sum(report.ended_at < steady_at for report in running.reports)
    wait_for(running, lambda: len(running.reports) >= first + voyage.calm_epochs)
    if leg.strategy == "restart":
        wait_for(running, lambda: DURABLE_S / 3 <= _since_checkpoint_s(running, voyage) <= DURABLE_S * 2 / 3)
    return first


def _migrated(running: Running, leg: Leg, voyage: Voyage) -> tuple[Course, float]:
    """Migrate; how that went, and when it ended."""
    tasks = len(dataflow_of(voyage.dataflow).tasks)
    options = Options(SLICES_A_TASK * tasks if leg.strategy == "progressive" else None)
    migration = running.scale(voyage.few if leg.direction == IN else voyage.many, leg.strategy, options)
    wait_for(running, lambda: not migration.under_way)
    if migration.state != "done" or migration.ended_at is None:
        raise RuntimeError(f"{leg.strategy} {leg.direction}: the migration {migration.state}: {migration.message}")
    return course_of(migration), migration.ended_at


def _wait_for_midst(running: Running, busy_s: float) -> None:
    """Wait until an epoch is under way, and then for a share of the time that it takes: alike for all strategies."""
    pool, last = running.pool, running.reports[-1].epoch
    wait_for(running, lambda: (pool.roster.begun or 0) > last)
    time.sleep(MIDST * busy_s)


def _since_checkpoint_s(running: Running, voyage: Voyage) -> float:
    """From the epoch of the last periodic checkpoint to the last one; nothing as long as there is none."""
    durable = DurableLog(current(open_store(str(voyage.directory / "checkpoint")))).last()
    if durable is None:
        return 0.0
    ends = {report.epoch: report.ended_at for report in running.reports}  # The last of each: some were repeated.
    since = [at for epoch, at in ends.items() if epoch >= durable.epoch]
    return max(since) - min(since) if since else 0.0


def _usual_s(reports: Sequence[EpochReport]) -> float:
    """From the end of one epoch to that of the next."""
    ends = [report.ended_at for report in reports]
    return median(late - early for early, late in pairwise(ends)) if len(ends) > 1 else 0.0
