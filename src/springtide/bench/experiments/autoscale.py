"""A load that steps up fourfold and back: how an app that adapts by itself follows, by DS2 and by Dhalion."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from springtide import App, Reduced, rates, sources
from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.counting import LastCounts, counted
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import cluster_session
from springtide.blocks.store import LocalStore
from springtide.connectors.generator.rows import GeneratorSpec
from springtide.control.adapt.ledger import Record, read_ledger
from springtide.engine.lifecycle.running import Running
from springtide.metrics.report import EpochReport
from springtide.policies.decision import Scale
from springtide.state.logic import Groups

POLICIES = ("ds2", "dhalion")
CALM_LAG_S = 5.0
"""An app that is no further behind keeps up."""
TARGET = 0.7


@dataclass(frozen=True)
class SlowCount:
    """A count that takes its time over every row, as a call to another service does: each worker adds capacity."""

    row_s: float

    def __call__(self, groups: Groups) -> Reduced:
        time.sleep(groups.rows.num_rows * self.row_s)
        return counted(groups)


@dataclass(frozen=True)
class Course:
    """One app's run: the rate and for how long, and the room that workers have."""

    policy: str
    directory: Path
    rate: float = 450.0
    factor: float = 4.0
    phases_s: tuple[float, float, float] = (30.0, 130.0, 110.0)
    row_s: float = 0.001
    maximum: int = 6
    interval_s: float = 2.0
    window_s: float = 8.0
    stabilise_s: float = 10.0
    scale_down_s: float = 16.0

    @property
    def steps(self) -> list[tuple[float, float]]:
        low, high, _ = self.phases_s
        return [(0.0, self.rate), (low, self.rate * self.factor), (low + high, self.rate)]


@dataclass(frozen=True)
class Followed:
    """What a course showed."""

    policy: str
    reports: tuple[EpochReport, ...]
    records: tuple[Record, ...]
    workers: tuple[tuple[float, int], ...]
    """When, and how many from then on."""
    began_at: float
    lost: int
    duplicated: int


def follow(course: Course) -> Followed:
    """Run a course in this process."""
    spark = cluster_session(1)
    app = App("autoscale", slices=32)
    counts = LastCounts("key")
    source = sources.generator(
        rates.step(course.steps), keys=200, seed=5, max_rows_per_epoch=math.ceil(4 * course.rate / 0.45)
    )
    rows = app.source("rows", source)
    slow = rows.key_by("key").reduce_batches(
        "count", SlowCount(course.row_s), state={"n": int}, output={"key": int, "n": int}
    )
    slow.sink("out", counts)
    app.adapt(
        1,
        course.maximum,
        course.policy,
        interval_s=course.interval_s,
        window_s=course.window_s,
        settle_s=course.window_s,
        stabilise_s=course.stabilise_s,
        scale_down_s=course.scale_down_s,
        target_utilisation=TARGET,
        catch_up_s=180.0,
    )
    running = app.start(
        spark,
        checkpoint=str(course.directory / "checkpoint"),
        local=str(course.directory / "local"),
        workers=1,
        keep_reports=ALL_REPORTS,
    )
    workers = [(time.time(), 1)]
    try:
        began = _began(running)
        _watch(running, began + sum(course.phases_s), workers)
    finally:
        reports = running.stop()
    taken = sum(report.rows_in for report in reports if not report.replayed)
    lost, duplicated = counts.against(_batch_counts(source.spec, taken))
    ledger = read_ledger(LocalStore(course.directory / "checkpoint"))
    return Followed(course.policy, tuple(reports), tuple(ledger), tuple(workers), began, lost, duplicated)


def _began(running: Running) -> float:
    """When the generator's clock started: with the first epoch."""
    while not running.reports:
        if not running.active:
            running.stop()
        time.sleep(0.05)
    first = running.reports[0]
    return first.ended_at - first.phases.total_s


def _watch(running: Running, until: float, workers: list[tuple[float, int]]) -> None:
    while time.time() < until:
        if not running.active:
            running.stop()
        now = len(running.pool.plan.workers)
        if now != workers[-1][1]:
            workers.append((time.time(), now))
        time.sleep(0.1)


def _batch_counts(spec: GeneratorSpec, rows: int) -> dict[int, int]:
    keys = spec.rows(0, rows, 0.0).column("key").to_numpy()
    return dict(zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True))


@dataclass(frozen=True)
class AutoscaleBench:
    rate: float = 450.0
    phases_s: tuple[float, float, float] = (30.0, 130.0, 110.0)
    factor: float = 4.0
    apart: bool = True
    """A Spark of its own for each policy."""

    def run(self) -> Findings:
        found = {}
        with arena("autoscale") as place:
            for policy in POLICIES:
                course = Course(policy, place.scratch / policy, self.rate, self.factor, self.phases_s)
                name = policy if self.apart else "both"
                found[policy] = place.call(name, follow, course)
                if self.apart:
                    place.leave(name)
        return self._findings(found, course)

    def _findings(self, found: dict[str, Followed], course: Course) -> Findings:
        measured = {policy: measure(followed, course) for policy, followed in found.items()}
        figures: dict[str, float | int | str] = {
            f"{policy}_{name}": value for policy, of in measured.items() for name, value in of.items()
        }
        names = list(measured[POLICIES[0]])
        rows = [[name.replace("_", " "), *(f"{of[name]:g}" for of in measured.values())] for name in names]
        headers = ["", *measured]
        return Findings("autoscale", headers, rows, figures, lambda axes: _draw(axes, found, course))


def enough(followed: Followed, course: Course) -> int:
    """The workers that the high rate needs, with the room to be left, by the time a row took towards its end."""
    end = followed.began_at + sum(course.phases_s[:2])
    late = [r for r in followed.reports if end - course.phases_s[1] / 3 <= r.ended_at < end]
    spent = sum(o.map_busy_s + sum(i.useful_s for i in o.instances) for r in late for o in r.operators)
    rows = sum(r.rows_in for r in late)
    return math.ceil(course.rate * course.factor * (spent / rows if rows else course.row_s) / TARGET)


def measure(followed: Followed, course: Course) -> dict[str, float | int]:
    """The figures of one policy."""
    up, down = followed.began_at + course.phases_s[0], followed.began_at + sum(course.phases_s[:2])
    end = followed.began_at + sum(course.phases_s)
    scales = [r for r in followed.records if isinstance(r.entry.decision, Scale) and r.entry.outcome == "done"]
    return {
        "steps_up": sum(up <= r.entry.at < down for r in scales),
        "steps_down": sum(r.entry.at >= down for r in scales),
        "seconds_to_stable": rounded(_settled(followed, scales, up, down) + _settled(followed, scales, down, end)),
        "overshoot_workers": max(0, max(n for _, n in followed.workers) - enough(followed, course)),
        "core_seconds": rounded(_core_seconds(followed, end)),
        "max_lag_s": rounded(max((r.latency_s or 0.0) for r in followed.reports if r.ended_at <= end)),
        "lost": followed.lost,
        "duplicated": followed.duplicated,
        "explained": sum(bool(r.entry.decision.reason) and r.entry.helped is not None for r in scales),
    }


def _settled(followed: Followed, scales: list[Record], since: float, until: float) -> float:
    """From a step of the load until the last change was over and the app kept up."""
    ended = [r.entry.ended_at or until for r in scales if since <= r.entry.at < until]
    late = [r.ended_at for r in followed.reports if since <= r.ended_at < until and (r.latency_s or 0) > CALM_LAG_S]
    return max([since, *ended, *late]) - since


def _core_seconds(followed: Followed, end: float) -> float:
    times = [*(at for at, _ in followed.workers[1:]), end]
    return sum((b - max(a, followed.began_at)) * n for (a, n), b in zip(followed.workers, times, strict=True))


def _draw(axes: Any, found: dict[str, Followed], course: Course) -> None:
    beside = axes.twinx()
    for (policy, followed), colour in zip(found.items(), ("tab:blue", "tab:orange"), strict=True):
        at = [0.0, *(when - followed.began_at for when, _ in followed.workers[1:]), sum(course.phases_s)]
        workers = [n for _, n in followed.workers]
        axes.step(at, [*workers, workers[-1]], where="post", color=colour, label=f"{policy}: workers", linewidth=2)
        lag = [(r.ended_at - followed.began_at, r.latency_s or 0.0) for r in followed.reports]
        beside.plot(*zip(*lag, strict=True), color=colour, alpha=0.4, label=f"{policy}: latency")
    axes.axhline(enough(found["ds2"], course), color="grey", linestyle=":", label="enough for the high rate")
    for when in (course.phases_s[0], sum(course.phases_s[:2])):
        axes.axvline(when, color="grey", alpha=0.3)
    axes.set(xlabel="seconds", ylabel="workers", title="the load steps up fourfold, and back", ylim=(0, None))
    beside.set(ylabel="latency, s", ylim=(0, None))
    axes.legend(loc="upper left", fontsize="small")
