"""A fast source and a slow one that meet: the fast one waits, and both are read to their ends."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from spark_kit import Row, parquet_epochs
from waiting import wait_until

from springtide import App, sinks, sources
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
START_S = 1_700_000_000.0
FAST_S, EPOCH_S, ALIGN_S = 3.2, 0.4, 1.0
"""Event time of all rows of the fast source, of its rows in one epoch, and how far it may be ahead."""
SLOW_ROWS, SLOW_STEP_S = 16, 0.2
"""An epoch takes one row of the slow source."""
SCHEMA = pa.schema([("key", pa.int64()), ("event_time", pa.timestamp("us", "UTC"))])


def fast_generator(_: Path) -> Any:
    return sources.generator(100, limit=round(100 * FAST_S), keys=3, start_s=START_S, max_rows_per_epoch=40)


def fast_files(place: Path) -> Any:
    def row(number: int) -> Row:
        return {"key": number % 3, "event_time": datetime.fromtimestamp(START_S, UTC) + timedelta(seconds=number / 100)}

    each = round(100 * EPOCH_S)
    epochs = [[row(n) for n in range(first, first + each)] for first in range(0, round(100 * FAST_S), each)]
    return parquet_epochs(place / "fast", epochs, SCHEMA, "key BIGINT, event_time TIMESTAMP")


@pytest.mark.parametrize("fast", [fast_generator, fast_files])
def test_a_fast_source_waits_for_a_slow_one(fast: Any, spark: "SparkSession", tmp_path: Path) -> None:
    slow = sources.generator(1 / SLOW_STEP_S, limit=SLOW_ROWS, keys=1, start_s=START_S, max_rows_per_epoch=1)
    app, out = App("aligned"), sinks.memory()
    left = app.source("fast", fast(tmp_path), align=f"{ALIGN_S} seconds").key_by("key")
    right = app.source("slow", slow).key_by("key")
    left.join("both", right, time=("event_time", "event_time"), window="1 hour").sink("out", out)
    reports: list[EpochReport] = []

    def told(source: int) -> int:
        return sum(report.sources[source].rows_in or 0 for report in reports)

    running = app.start(
        spark, checkpoint=str(tmp_path / "checkpoint"), local=str(tmp_path / "local"), on_epoch=reports.append
    )
    try:
        whole = round(100 * FAST_S)
        wait_until("both sources to be read", lambda: (told(0), told(1)) == (whole, SLOW_ROWS), 120.0)
    finally:
        running.stop()
    fast_rows = slow_rows = waits = 0
    for report in reports:
        took_fast, took_slow = (source.rows_in or 0 for source in report.sources)
        waits += took_slow > 0 and took_fast == 0 and fast_rows < whole
        fast_rows, slow_rows = fast_rows + took_fast, slow_rows + took_slow
        ahead_s = fast_rows / 100 - slow_rows * SLOW_STEP_S
        assert ahead_s <= ALIGN_S + EPOCH_S + SLOW_STEP_S, f"epoch {report.epoch}"
    assert waits, "in some epochs the slow source was read alone"
