"""A trial: a keyed count on several workers, filled with keys, then changed while it runs.

It goes as fast as it can in epochs of a fixed number of rows with random keys. What each change cost
is read from its epoch reports; whether a row was lost or counted twice, from a batch count of the
same rows.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from springtide.app import App
from springtide.bench.harness.contestants import ALL_REPORTS, Load
from springtide.bench.harness.counting import LastCounts
from springtide.connectors import sinks, sources
from springtide.engine.executors.worker_pids import worker_processes
from springtide.engine.lifecycle.running import Running
from springtide.engine.pool.replicator import Checkpoint
from springtide.engine.spark.session import SessionConfig, box, make_session
from springtide.metrics.report import EpochReport
from springtide.state import aggregates as agg

FILL_ROWS = 250_000
LIMIT_S = 300.0
POLL_S = 0.05


@dataclass(frozen=True)
class Scale:
    """Grow or shrink."""

    workers: int
    strategy: str = "progressive"


@dataclass(frozen=True)
class Kill:
    """End this number of workers with SIGKILL, all at once, spread over the ring."""

    workers: int


Change = Scale | Kill


@dataclass(frozen=True)
class Span:
    """When a change was asked for, when what it needs was there, and when it was over."""

    change: Change
    asked_at: float
    began_at: float
    ended_at: float
    moved: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Track:
    """What a trial showed."""

    reports: tuple[EpochReport, ...]
    spans: tuple[Span, ...]
    lost: int
    duplicated: int
    checkpoints: tuple[Checkpoint, ...]
    state_bytes: int

    def gaps(self, after: float, until: float) -> list[float]:
        """Between the ends of epochs, for those that ended in a span."""
        ends = [r.ended_at for r in self.reports]
        return [b - a for a, b in pairwise(ends) if after < b and a < until]

    def epochs(self, after: float, until: float) -> list[EpochReport]:
        """The epochs that were under way in a span."""
        return [r for r in self.reports if r.ended_at > after and r.ended_at - r.phases.total_s < until]

    def calm(self) -> list[EpochReport]:
        """The epochs outside all spans."""
        busy = [(s.asked_at, s.ended_at) for s in self.spans]
        return [r for r in self.reports if not any(a < r.ended_at and r.ended_at - 2 < b for a, b in busy)]

    @property
    def calm_epoch_s(self) -> float:
        """The usual time of an epoch."""
        return median(r.phases.total_s for r in self.calm())

    @property
    def calm_gap_s(self) -> float:
        """The usual time between the ends of two epochs."""
        calm = {r.epoch: r.ended_at for r in self.calm()}
        return median(calm[e] - calm[e - 1] for e in calm if e - 1 in calm)


@dataclass(frozen=True)
class Trial:
    """How many keys, rows an epoch and workers; what changes, with calm epochs before and after each."""

    directory: Path
    keys: int
    rows: int = 10_000
    workers: int = 2
    replicas: int = 1
    changes: tuple[Change, ...] = ()
    calm: int = 15
    checkpoint_s: float = 2.0


def run_trial(trial: Trial) -> Track:
    """Run a trial in this process."""
    spark = cluster_session(trial.workers)
    filled = _fill(spark, trial)
    counts = LastCounts()
    running = _start(spark, trial, Load(trial.rows, trial.keys), counts)
    spans = []
    try:
        wait_for_epochs(running, trial.calm)
        for change in trial.changes:
            spans.append(_kill(running, change) if isinstance(change, Kill) else scaled(running, change))
            wait_for_epochs(running, trial.calm)
        checkpoints = tuple(running.pool.replicator.done)
    finally:
        reports = running.stop()
    new = tuple(r for r in reports if not r.replayed)  # The last epoch that filled the state is published again.
    lost, duplicated = _compare(spark, trial, counts, filled, sum(r.rows_in for r in new))
    return Track(new, tuple(spans), lost, duplicated, checkpoints, reports[-1].operators[0].state_bytes)


@cache
def cluster_session(workers: int) -> SparkSession:
    """The Spark of this process, with this number of workers."""
    return make_session("bench", SessionConfig(box(workers), workers=workers))


def _start(spark: SparkSession, trial: Trial, load: Load, sink: sinks.SinkSpec, until: str | None = None) -> Running:
    app = App("bench")
    rows = app.source("rows", sources.stream(load.stream)).transform("keys", load.keyed)
    rows.key_by("k").aggregate("count", n=agg.count()).sink("out", sink)
    return app.start(
        spark,
        checkpoint=str(trial.directory / "checkpoint"),
        local=str(trial.directory / "local"),
        workers=trial.workers,
        replicas=trial.replicas,
        until=until,
        keep_reports=ALL_REPORTS,
    )


def _fill(spark: SparkSession, trial: Trial) -> int:
    """Every key once, or a little more; returns the number of rows."""
    epochs = -(-trial.keys // FILL_ROWS)
    load = Load(-(-trial.keys // epochs), trial.keys, in_turn=True)
    reports = _start(spark, trial, load, sinks.noop(), f"epochs={epochs}").wait(LIMIT_S)
    return sum(r.rows_in for r in reports)


def wait_for_epochs(running: Running, epochs: int) -> None:
    """Wait until this number of epochs has ended."""
    goal = len(running.reports) + epochs
    wait_for(running, lambda: len(running.reports) >= goal)


def wait_for(running: Running, condition: Callable[[], bool]) -> None:
    """Wait for a condition, as long as the app runs."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if not running.active:
            raise RuntimeError(f"the query ended: {running.query.exception()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"a change did not come to its end in {LIMIT_S} s")
        time.sleep(POLL_S)


def scaled(running: Running, change: Scale) -> Span:
    """Carry a change out, to its end."""
    asked = time.time()
    migration = running.scale(change.workers, change.strategy)
    wait_for(running, lambda: not migration.under_way)
    if migration.state != "done":
        raise RuntimeError(f"the migration {migration.state}: {migration.message}")
    began, ended = migration.phases.get("copying", asked), migration.ended_at or time.time()
    return Span(change, asked, began, ended, len(migration.flipped), migration.bytes)


def _kill(running: Running, change: Kill) -> Span:
    """Ends with the first epoch that was published without the lost workers."""
    pool = running.pool
    ring = [w for w in pool.roster.ring_order() if pool.plan.worker(w) is not None]
    victims = ring[:: max(1, len(ring) // change.workers)][: change.workers]
    processes = worker_processes(os.getpid())
    asked = time.time()
    for victim in victims:
        os.kill(processes[victim], signal.SIGKILL)
    wait_for(running, lambda: running.pool.plan.worker(victims[0]) is None)
    version = running.pool.plan.version
    wait_for(running, lambda: running.reports[-1].plan >= version)
    ended = next(r.ended_at for r in running.reports if r.plan >= version)
    return Span(change, asked, asked, ended)


def _compare(spark: SparkSession, trial: Trial, counts: LastCounts, filled: int, rows: int) -> tuple[int, int]:
    """Rows lost and rows counted twice, by a batch count of the same rows."""
    load = Load(trial.rows, trial.keys)
    numbers = spark.range(filled, filled + rows).withColumnRenamed("id", "value")
    expected = load.keyed(numbers).groupBy("k").agg(F.count("*").alias("n")).toArrow()
    new = dict(zip(expected["k"].to_pylist(), expected["n"].to_pylist(), strict=True))
    every = new.keys() | counts.by_key.keys()
    return counts.against({k: new.get(k, 0) + filled // trial.keys + (k < filled % trial.keys) for k in every})
