"""Slices in the wrong places: what online deployment makes of them, one at a time, while the app runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from springtide import App, Reduced, agg, sinks, sources
from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.counting import counted
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import cluster_session, wait_for, wait_for_epochs
from springtide.blocks.store import LocalStore
from springtide.control.adapt.ledger import Record, read_ledger
from springtide.control.adapt.target import AdaptedRunning
from springtide.engine.lifecycle.running import Running
from springtide.ids import WorkerId
from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Rebalance
from springtide.policies.effect import crossing, imbalance
from springtide.state.logic import Groups

SLICES = 16
WINDOW_S = 8.0
FIRST, SECOND = "count", "largest"


@dataclass(frozen=True)
class HeavyCount:
    """A count that computes something over every row: a harmonic number."""

    terms: int

    def __call__(self, groups: Groups) -> Reduced:
        numbers = np.arange(1, self.terms + 1, dtype=np.float64)
        for _ in range(groups.rows.num_rows):
            np.sum(1 / numbers)
        return counted(groups)


@dataclass(frozen=True)
class Deployed:
    """What became of it: a measure over time, before and after, and the decisions."""

    course: tuple[tuple[float, float], ...]
    before: float
    after: float
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Experiment:
    """An app, how it is put in the wrong places, and what is measured."""

    name: str
    directory: Path
    seconds: float
    workers: int = 2


def run_traffic(experiment: Experiment) -> Deployed:
    """Two keyed steps on the same key; half of the second one's slices are moved away from those that feed them."""
    app = App("deploy", slices=SLICES)
    rows = app.source("rows", sources.generator(20_000, keys=20_000, seed=3, max_rows_per_epoch=100_000))
    counts = rows.key_by("key").aggregate(FIRST, n=agg.count())
    counts.key_by("key").aggregate(SECOND, most=agg.max("n")).sink("out", sinks.noop())

    def misplace(running: Running) -> None:
        plan = running.pool.plan
        other = {w.id: plan.workers[(i + 1) % len(plan.workers)].id for i, w in enumerate(plan.workers)}
        owners = plan.operators[SECOND].owners
        for worker in other:
            wrong = [s for s, owner in enumerate(owners) if owner == worker][::2]
            _move(running, SECOND, wrong, other[worker])

    nobody_is_busy = {"cpu_low": 1.0, "cpu_high": 1.0, "queue_low": 1e9, "queue_high": 1e9, "gain": 1.0, "slack": 1.0}
    return _run(app, experiment, misplace, crossing, lambda snapshot: nobody_is_busy)


def run_skew(experiment: Experiment) -> Deployed:
    """A heavy step, and keys of which a few get most rows: one worker has all the hot slices."""
    app = App("deploy", slices=SLICES)
    rows = app.source("rows", sources.generator(400, keys=200, skew=0.6, seed=3, max_rows_per_epoch=4_000))
    heavy = HeavyCount(600_000)
    result = rows.key_by("key").reduce_batches(FIRST, heavy, state={"n": int}, output={"key": int, "n": int})
    result.sink("out", sinks.noop())

    def misplace(running: Running) -> None:
        first, second = (w.id for w in running.pool.plan.workers[:2])
        owners = running.pool.plan.operators[FIRST].owners
        mine = [s for s, owner in enumerate(owners) if owner == second]
        _move(running, FIRST, mine[: round(0.75 * len(mine))], first)

    return _run(app, experiment, misplace, imbalance, _around_the_mean)


def _around_the_mean(snapshot: Snapshot) -> dict[str, float]:
    """A worker that is a little busier than the mean has too much to do, any other has room."""
    level = min(1.0, 1.05 * sum(worker.cpu for worker in snapshot.workers) / len(snapshot.workers))
    return {"cpu_low": level, "cpu_high": level, "queue_low": 1e9, "queue_high": 1e9}


def _move(running: Running, step: str, slices: list[int], to: WorkerId) -> None:
    migration = running.move(step, slices, to, "handover")
    wait_for(running, lambda: not migration.under_way)
    if migration.state != "done":
        raise RuntimeError(f"the migration {migration.state}: {migration.message}")


def _run(
    app: App,
    experiment: Experiment,
    misplace: Callable[[Running], None],
    measure: Callable[[Snapshot], float],
    options: Callable[[Snapshot], dict[str, float]],
) -> Deployed:
    spark = cluster_session(experiment.workers)
    checkpoint = experiment.directory / "checkpoint"
    running = app.start(
        spark,
        checkpoint=str(checkpoint),
        local=str(experiment.directory / "local"),
        workers=experiment.workers,
        trigger_s=1.0,
        keep_reports=ALL_REPORTS,
    )
    course: list[tuple[float, float]] = []
    try:
        wait_for_epochs(running, 4)
        misplace(running)
        adapted = AdaptedRunning(app.graph(), running)
        began = time.time()
        snapshot = _look(running, adapted, measure, course, began, WINDOW_S)
        before = course[-1][1]
        app.adapt(
            experiment.workers,
            experiment.workers,
            "otd",
            policy_options=options(snapshot),
            strategy="handover",
            interval_s=1.0,
            window_s=3.0,
            settle_s=3.0,
            stabilise_s=0.0,
        )
        _look(running, adapted, measure, course, began, experiment.seconds)
    finally:
        running.stop()
    after = median(value for at, value in course if at > course[-1][0] - WINDOW_S)
    return Deployed(tuple(course), before, after, tuple(read_ledger(LocalStore(checkpoint))))


def _look(
    running: Running,
    adapted: AdaptedRunning,
    measure: Callable[[Snapshot], float],
    course: list[tuple[float, float]],
    began: float,
    seconds: float,
) -> Snapshot:
    """Measure for `seconds`; returns the last snapshot."""
    until = time.time() + seconds
    last: Snapshot | None = None
    while time.time() < until or last is None:
        if not running.active:
            running.stop()
        snapshot = adapted.snapshot(WINDOW_S / 2)
        if snapshot is not None:
            course.append((time.time() - began, measure(snapshot)))
            last = snapshot
        time.sleep(0.5)
    return last


@dataclass(frozen=True)
class DeployBench:
    seconds: float = 90.0

    def run(self) -> Findings:
        with arena("deploy") as place:
            traffic = place.call("both", run_traffic, Experiment("traffic", place.scratch / "traffic", self.seconds))
            skew = place.call("both", run_skew, Experiment("skew", place.scratch / "skew", self.seconds))
        moves = {
            name: sum(isinstance(r.entry.decision, Rebalance) and r.entry.outcome == "done" for r in found.records)
            for name, found in (("traffic", traffic), ("skew", skew))
        }
        figures: dict[str, float | int | str] = {
            "cross_share_before": rounded(traffic.before),
            "cross_share_after": rounded(traffic.after),
            "imbalance_before": rounded(skew.before),
            "imbalance_after": rounded(skew.after),
            "moves_traffic": moves["traffic"],
            "moves_skew": moves["skew"],
        }
        rows = [
            ["bytes between workers, share", f"{traffic.before:.2f}", f"{traffic.after:.2f}", str(moves["traffic"])],
            ["busiest worker over the mean", f"{skew.before:.2f}", f"{skew.after:.2f}", str(moves["skew"])],
        ]
        return Findings(
            "deploy",
            ["", "as placed", "after OTD", "slices moved"],
            rows,
            figures,
            lambda axes: _draw(axes, traffic, skew),
        )


def _draw(axes: Any, traffic: Deployed, skew: Deployed) -> None:
    beside = axes.twinx()
    axes.plot(*zip(*traffic.course, strict=True), color="tab:blue", label="bytes between workers, share (left)")
    beside.plot(*zip(*skew.course, strict=True), color="tab:orange", label="busiest worker over the mean (right)")
    axes.axhline(0.06, color="tab:blue", linestyle=":", alpha=0.5)
    beside.axhline(1.2, color="tab:orange", linestyle=":", alpha=0.5)
    axes.set(xlabel="seconds", ylabel="share", ylim=(0, 1), title="slices moved one at a time by OTD")
    beside.set(ylabel="max over mean", ylim=(1, 2))
    lines = [*axes.get_lines()[:1], *beside.get_lines()[:1]]
    axes.legend(lines, [line.get_label() for line in lines], loc="upper right", fontsize="small")
