"""The live strategies, and stopping and starting again, on the same move: what people notice of each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from springtide.app import App
from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import cluster_session, wait_for, wait_for_epochs
from springtide.connectors import sinks, sources
from springtide.engine.lifecycle.running import Running
from springtide.metrics.report import EpochReport
from springtide.migration.step import Options
from springtide.migration.strategies import OUR_LIVE
from springtide.state import aggregates as agg

LIVE = tuple(strategy.name for strategy in OUR_LIVE)
RESTART = "stop-restart"
STEP = "count"


@dataclass(frozen=True)
class Turn:
    """One strategy's move: when it began and ended, what was copied, and the epochs around it."""

    strategy: str
    began_at: float
    ended_at: float
    bytes: int
    reports: tuple[EpochReport, ...]

    def latencies(self, part: str) -> list[float]:
        """Of the epochs before, during or after the move."""
        found = {
            "before": [r for r in self.reports if r.ended_at <= self.began_at],
            "during": [r for r in self.reports if self.began_at < r.ended_at and _started(r) < self.ended_at],
            "after": [r for r in self.reports if _started(r) >= self.ended_at],
        }[part]
        return [r.latency_s for r in found if r.latency_s is not None]


@dataclass(frozen=True)
class CompareBench:
    """Half of one worker's slices go to another worker."""

    rate: int = 4_000
    keys: int = 200_000
    calm: int = 20
    hold_s: float = 10.0
    """How long `lazy` keeps the old owner."""

    def run(self) -> Findings:
        with arena("migrate-compare") as place:
            turns = place.call("springtide", run_turns, place.scratch, self.rate, self.keys, self.calm, self.hold_s)
        return self._findings(turns)

    def _findings(self, turns: Sequence[Turn]) -> Findings:
        figures: dict[str, float | int | str] = {"rate": self.rate, "keys": self.keys}
        rows = []
        for turn in turns:
            name = turn.strategy.replace("-", "_")
            figures[f"{name}_duration_s"] = rounded(turn.ended_at - turn.began_at)
            figures[f"{name}_bytes"] = turn.bytes
            row = [turn.strategy, f"{turn.ended_at - turn.began_at:.2f}", f"{turn.bytes / 1e6:.1f}"]
            for part in ("before", "during", "after"):
                found = turn.latencies(part) or [0.0]
                p50, p99, most = median(found), _p99(found), max(found)
                figures |= {f"{name}_{part}_p50_s": rounded(p50), f"{name}_{part}_max_s": rounded(most)}
                figures[f"{name}_{part}_p99_s"] = rounded(p99)
                row.append(f"{p50:.2f} / {p99:.2f} / {most:.2f}")
            rows.append(row)

        def draw(axes: Any) -> None:
            for turn in turns:
                times = [r.ended_at - turn.began_at for r in turn.reports]
                axes.plot(times, [r.latency_s or 0.0 for r in turn.reports], marker=".", label=turn.strategy)
            axes.axvline(0, color="tab:gray", linestyle=":")
            axes.set(
                title="Latency while half of a worker's slices move",
                xlabel="s from the start of the move",
                ylabel="latency, s",
                ylim=(0, None),
            )
            axes.legend()

        latency = "p50 / p99 / max latency s"
        headers = ["strategy", "took s", "MB copied", f"before: {latency}", "during", "after"]
        return Findings("migrate-compare", headers, rows, figures, draw)


def run_turns(directory: Path, rate: int, keys: int, calm: int, hold_s: float) -> list[Turn]:
    """Each strategy in turn on one app, there and back; then a stop and a start with another plan."""
    spark = cluster_session(2)
    source = sources.generator(rate, keys=keys, seed=5, max_rows_per_epoch=4 * rate)

    def start() -> Running:
        app = App("compare")
        app.source("rows", source).key_by("key").aggregate(STEP, n=agg.count()).sink("out", sinks.noop())
        checkpoint, local = str(directory / "checkpoint"), str(directory / "local")
        return app.start(spark, workers=2, replicas=0, checkpoint=checkpoint, local=local, keep_reports=ALL_REPORTS)

    running = start()
    turns = []
    try:
        wait_for_epochs(running, calm)
        _turn(running, LIVE[0], calm, Options())  # For practice: the first copies of a Spark are slow.
        for strategy in LIVE:
            turns.append(_turn(running, strategy, calm, Options(hold_s=hold_s)))
        first = len(running.reports)
        wait_for_epochs(running, calm)
        before = running.reports[first:]
        began = time.time()
    finally:
        running.stop()
    running = start()
    try:
        wait_for_epochs(running, 1)
        ended = running.reports[0].ended_at
        wait_for_epochs(running, calm)
    finally:
        after = running.stop()
    held = after[-1].operators[0].state_bytes
    return [*turns, Turn(RESTART, began, ended, held, (*before, *after))]


def _turn(running: Running, strategy: str, calm: int, options: Options) -> Turn:
    first = len(running.reports)
    wait_for_epochs(running, calm)
    source, target = (w.id for w in running.pool.plan.workers)
    mine = sorted(running.pool.plan.operators[STEP].owned(source))
    moving = mine[: len(mine) // 2]
    began = time.time()
    there = running.pool.migrator.move(STEP, frozenset(moving), target, strategy, options)
    wait_for(running, lambda: not there.under_way)
    ended = there.ended_at or time.time()
    wait_for_epochs(running, calm)
    turn = Turn(strategy, began, ended, there.bytes, tuple(running.reports[first:]))
    back = running.move(STEP, moving, source, "handover")
    wait_for(running, lambda: not back.under_way)
    return turn


def _started(report: EpochReport) -> float:
    return report.ended_at - report.phases.total_s


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[-1] if len(values) > 1 else values[0]
