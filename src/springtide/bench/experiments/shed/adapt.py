"""A load that steps past one worker's capacity: rows are shed until more workers serve, and no longer.

Beside it runs the same app that may not shed. The work waits for every row, as a call to another service does: so each
worker adds capacity, though all share this machine.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from springtide import App, rates, sinks, sources
from springtide.bench.experiments.autoscale import SlowCount
from springtide.bench.experiments.shed.figures import CYCLE_S, WITH, WITHOUT, sheds
from springtide.bench.harness.arena import arena
from springtide.bench.harness.bar_table import Table
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.findings import Figure, Findings
from springtide.bench.harness.trial import cluster_session, wait_for
from springtide.control.adapt.ledger import Record, read_ledger
from springtide.metrics.report import EpochReport
from springtide.policies.decision import Scale

LOW = 0.5
MINIMUM = 0.3
"""So low that shedding covers the overload until there are more workers."""
ROW_S = 0.001
MAXIMUM = 3
COLOURS = {WITH: "tab:blue", WITHOUT: "tab:red"}


@dataclass(frozen=True)
class Course:
    """One app's run: what it accepts, the rate, and for how long it is low and high."""

    directory: Path
    minimum: float
    factor: float
    phases_s: tuple[float, float]

    @property
    def rates(self) -> tuple[float, float]:
        """Rows a second before the step and after it; one worker works on 1 / ROW_S at most."""
        return LOW / ROW_S, self.factor / ROW_S


@dataclass(frozen=True)
class Adapted:
    """What a course showed. Times are seconds since the Unix epoch."""

    reports: tuple[EpochReport, ...]
    records: tuple[Record, ...]
    step_s: float
    """When the load stepped up."""
    ended_s: float
    rates: tuple[float, float]

    @property
    def during(self) -> list[EpochReport]:
        """The epochs since the step."""
        return [report for report in self.reports if self.step_s <= report.ended_at <= self.ended_s]

    def rate_at(self, at_s: float) -> float:
        return self.rates[at_s >= self.step_s]


def follow(course: Course) -> Adapted:
    """Run a course in this process."""
    low, high = course.rates
    low_s, high_s = course.phases_s
    app = App("shed-adapt", slices=32)
    rows = app.source("rows", sources.generator(rates.step([(0.0, low), (low_s, high)]), keys=200, seed=5))
    slow = rows.key_by("key").reduce_batches("count", SlowCount(ROW_S), state={"n": int}, output={"key": int, "n": int})
    slow.sink("out", sinks.noop()).with_minimum_accuracy(course.minimum)
    app.adapt(
        1,
        MAXIMUM,
        "ds2",
        interval_s=2.0,
        window_s=8.0,
        settle_s=8.0,
        stabilise_s=10.0,
        scale_down_s=600.0,
        catch_up_s=60.0,
    )
    running = app.start(
        cluster_session(1),
        checkpoint=str(course.directory / "checkpoint"),
        local=str(course.directory / "local"),
        workers=1,
        keep_reports=ALL_REPORTS,
    )
    try:
        wait_for(running, lambda: bool(running.reports))
        first = running.reports[0]
        began_s = first.ended_at - first.phases.total_s  # The generator's clock starts with the first epoch.
        ended_s = began_s + low_s + high_s
        wait_for(running, lambda: time.time() > ended_s)
    finally:
        reports = running.stop()
    told = tuple(read_ledger(running.store))
    return Adapted(tuple(reports), told, began_s + low_s, ended_s, course.rates)


def lag_cycles(track: Adapted) -> list[tuple[float, float]]:
    """Since the step: when an epoch ended, and the cycles of arrivals that waited then."""
    return [
        (report.ended_at - track.step_s, (report.lag_rows or 0) / track.rate_at(report.ended_at) / CYCLE_S)
        for report in track.during
    ]


def asked_s(track: Adapted) -> float | None:
    """From the step to the first decision for more workers."""
    found = [r.entry.at for r in track.records if isinstance(r.entry.decision, Scale) and r.entry.at >= track.step_s]
    return found[0] - track.step_s if found else None


def served_s(track: Adapted) -> float | None:
    """From the step to the start of the first epoch in which a worker has rows that had none before the step."""
    before: set[str] = set()
    for report in track.reports:
        at_work = _at_work(report)
        if report.ended_at < track.step_s:
            before |= at_work
        elif at_work - before:
            return _start_s(report) - track.step_s
    return None


def ended_cycles(track: Adapted) -> float | None:
    """From the first epoch with new workers to the end of the last that sheds, in cycles.

    None if no new worker came, or rows were still shed in the last cycle.
    """
    served = served_s(track)
    shedding = [report.ended_at for report in track.during if sheds(report)]
    last = max(shedding, default=track.step_s)
    if served is None or last > track.ended_s - CYCLE_S:
        return None
    return max(0.0, last - track.step_s - served) / CYCLE_S


def least_accuracy(track: Adapted) -> float:
    """The least share that an epoch processed since the step."""
    return min((query.accuracy for report in track.during for query in report.queries), default=1.0)


def _start_s(report: EpochReport) -> float:
    return report.ended_at - report.phases.total_s


def _at_work(report: EpochReport) -> set[str]:
    """The workers with rows."""
    return {i.worker for operator in report.operators for i in operator.instances if i.rows_in}


@dataclass(frozen=True)
class ShedAdaptBench:
    factor: float = 1.6
    phases_s: tuple[float, float] = (40.0, 100.0)
    apart: bool = True
    """A Spark of its own for each."""

    @classmethod
    def quick(cls, factor: float = 1.6) -> "ShedAdaptBench":
        """Shorter phases, in one Spark."""
        return cls(factor, (12.0, 30.0), apart=False)

    def run(self) -> Findings:
        tracks = {}
        with arena("shed-adapt") as place:
            for name, minimum in ((WITH, MINIMUM), (WITHOUT, 1.0)):
                course = Course(place.scratch / name, minimum, self.factor, self.phases_s)
                process = name if self.apart else "both"
                tracks[name] = place.call(process, follow, course)
                if self.apart:
                    place.leave(process)
        return self._findings(tracks)

    def _findings(self, tracks: Mapping[str, Adapted]) -> Findings:
        figures: dict[str, Figure] = {"factor": self.factor}
        table = Table(figures)
        ours = tracks[WITH]
        table.one("workers_asked_s", asked_s(ours))
        table.one("served_s", served_s(ours))
        table.one("ended_cycles", ended_cycles(ours), "3")
        table.one("accuracy_least", least_accuracy(ours), f"{MINIMUM:g}")
        worst = {name: max((lag for _, lag in lag_cycles(track)), default=0.0) for name, track in tracks.items()}
        table.both("lag_cycles", worst)
        table.both("workers", {name: len(_at_work(track.reports[-1])) for name, track in tracks.items()})
        headers = ["", *(f"{name} shedding" for name in tracks), "bar"]
        return Findings("shed-adapt", headers, table.rows, figures, lambda axes: _draw(axes, tracks))


def _draw(axes: Any, tracks: Mapping[str, Adapted]) -> None:
    """Workers, what waits, and the accuracy, since the step."""
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(9, 8)
    workers, lag, accuracy = figure.subplots(3, 1, sharex=True)
    for name, track in tracks.items():
        how = {"color": COLOURS[name], "label": f"{name} shedding"}
        at = [report.ended_at - track.step_s for report in track.reports]
        workers.step(at, [len(_at_work(report)) for report in track.reports], where="post", **how)
        if lags := lag_cycles(track):
            lag.plot(*zip(*lags, strict=True), **how)
    ours = tracks[WITH]
    shares = [(r.ended_at - ours.step_s, query.accuracy) for r in ours.reports for query in r.queries]
    accuracy.plot(*zip(*shares, strict=True), color=COLOURS[WITH], label="with shedding")
    accuracy.axhline(MINIMUM, color="grey", linestyle="--", linewidth=1, label=f"its minimum, {MINIMUM:g}")
    for panel in (workers, lag, accuracy):
        panel.axvline(0, color="grey", alpha=0.4, linewidth=1)
        for name, track in tracks.items():
            if (served := served_s(track)) is not None:
                panel.axvline(served, color=COLOURS[name], linestyle=":", linewidth=1)
        panel.grid(alpha=0.25)
        panel.set_ylim(0, None)
        panel.legend(loc="best", fontsize="small")
    workers.set(title="the load steps up: rows are shed until new workers (dotted) serve", ylabel="workers with rows")
    lag.set(ylabel="cycles of arrivals\nthat wait")
    accuracy.set(ylabel="accuracy", ylim=(0, 1.05), xlabel="seconds since the step")
