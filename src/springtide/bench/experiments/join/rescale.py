"""A join that gets one more worker under load: the longest epoch meanwhile, and whether every pair came once."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from springtide.bench.experiments.join.growth import FILL_ROWS
from springtide.bench.experiments.join.meeting import Meeting
from springtide.bench.harness.arena import Arena
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.trial import LIMIT_S, Scale, Track, cluster_session, scaled, wait_for_epochs
from springtide.connectors import sinks
from springtide.engine.lifecycle.running import Running


@dataclass(frozen=True)
class Rescale:
    held: int = 1_000_000
    """Rows that wait."""
    rows: int = 10_000
    """An epoch, of both sides."""
    workers: int = 2
    more: int = 3
    calm: int = 20
    """Epochs before and after."""

    def run(self, place: Arena) -> Track:
        track = place.call("rescale", grow_under_load, self, place.scratch / "rescale")
        place.leave("rescale")
        return track


def grow_under_load(plan: Rescale, directory: Path) -> Track:
    """Fill the state, let the app run, and give it more workers meanwhile."""
    spark = cluster_session(plan.workers)
    fill = min(plan.held // 2, FILL_ROWS)
    epochs = -(-plan.held // 2 // fill)
    _start(spark, plan, directory, Meeting(fill, plan.held), sinks.noop(), f"epochs={epochs}").wait(LIMIT_S)
    load, out = Meeting(plan.rows // 2, plan.held), sinks.memory()
    running = _start(spark, plan, directory, load, out)
    try:
        wait_for_epochs(running, plan.calm)
        span = scaled(running, Scale(plan.more))
        wait_for_epochs(running, plan.calm)
    finally:
        reports = running.stop()
    new = tuple(report for report in reports if not report.replayed)  # The last epoch that filled comes again.
    begun = fill * epochs
    expected = _pairs(spark, load, begun, begun + sum(report.rows_in for report in new) // 2)
    epochs_told = {report.epoch for report in new}
    found = coded(table for epoch, table in out.epochs.items() if epoch in epochs_told)
    lost, duplicated = compared(found, expected)
    return Track(new, (span,), lost, duplicated, (), sum(step.state_bytes for step in new[-1].operators))


def _start(
    spark: SparkSession, plan: Rescale, directory: Path, load: Meeting, sink: sinks.SinkSpec, until: str | None = None
) -> Running:
    return load.app(sink).start(
        spark,
        checkpoint=str(directory / "checkpoint"),
        local=str(directory / "local"),
        workers=plan.workers,
        until=until,
        keep_reports=ALL_REPORTS,
    )


def _pairs(spark: SparkSession, load: Meeting, begin: int, end: int) -> npt.NDArray[np.int64]:
    """Those of which the later row has a number from `begin` up to `end`, by a batch join."""
    numbers = spark.range(max(0, begin - load.side), end).withColumnRenamed("id", "value")
    left, right = (load.made(numbers, side).withColumnRenamed("v", name) for side, name in enumerate(("x", "y")))
    right = right.select(F.col("k").alias("k2"), F.col("at").alias("at2"), "y")
    apart = F.abs(F.unix_micros("at2") - F.unix_micros("at"))
    both = left.join(right, (F.col("k") == F.col("k2")) & (apart <= load.span_us))
    return coded(
        [
            both.filter(F.greatest("x", "y") >= begin)
            .select(F.col("x").alias("v"), F.col("y").alias("v_right"))
            .toArrow()
        ]
    )


def coded(tables: Iterable[pa.Table]) -> npt.NDArray[np.int64]:
    """Pairs, each as one number."""
    pairs = [t["v"].to_numpy().astype(np.int64) << 32 | t["v_right"].to_numpy() for t in tables if t.num_rows]
    return np.concatenate(pairs) if pairs else np.empty(0, np.int64)


def compared(found: npt.NDArray[np.int64], expected: npt.NDArray[np.int64]) -> tuple[int, int]:
    """How many pairs are missing, and how many there are too many."""
    values, inverse = np.unique(np.concatenate([found, expected]), return_inverse=True)
    balance = np.bincount(inverse[: len(found)], minlength=len(values)) - np.bincount(
        inverse[len(found) :], minlength=len(values)
    )
    return int(-balance[balance < 0].sum()), int(balance[balance > 0].sum())
