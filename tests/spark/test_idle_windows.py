"""Input stops: what its last rows have made due comes all the same, and then the app is at rest."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from waiting import wait_until

from springtide import App, agg, sinks, sources
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS, EACH = 120, 40
START_S = 1_700_000_000.0
SIZE_US = 100_000


def test_windows_and_sessions_close_when_input_has_stopped(spark: "SparkSession", tmp_path: Path) -> None:
    """Three epochs of 0.4 s of event time each, and one without rows, for what the third one has made due."""
    source = sources.generator(100, limit=ROWS, keys=1, start_s=START_S, max_rows_per_epoch=EACH)
    app, windows, sessions = App("stops"), sinks.memory(), sinks.memory()
    rows = app.source("rows", source)
    counted = (
        rows.key_by("key").window("event_time", timedelta(microseconds=SIZE_US)).aggregate("windows", n=agg.count())
    )
    counted.sink("closed", windows, mode="final")
    # Each row but the last is a session of its own: rows of one key are 10 ms apart.
    apart = rows.key_by("key").session("event_time", "5 milliseconds").aggregate("sessions", n=agg.count())
    apart.sink("over", sessions, mode="final")
    reports: list[EpochReport] = []
    running = app.start(
        spark, checkpoint=str(tmp_path / "checkpoint"), local=str(tmp_path / "local"), on_epoch=reports.append
    )
    try:
        wait_until("the last session", lambda: len(sessions.rows()) == ROWS - 1, 60.0)
        wait_until("an epoch without rows", lambda: len(reports) == 4, 60.0)
        assert running._supervisor.runner.expiring() is None, "nothing asks for another epoch"
    finally:
        running.stop()
    assert [(report.rows_in, report.without_input) for report in reports] == [(EACH, False)] * 3 + [(0, True)]
    times = source.spec.rows(0, ROWS, START_S)["event_time"].cast("int64").to_numpy()
    begins = times // SIZE_US * SIZE_US
    expected = Counter(begins[begins + SIZE_US <= times.max()].tolist())
    found = Counter({round(row["window_start"].timestamp() * 1e6): row["n"] for row in windows.rows()})
    assert found == expected
    assert len(windows.rows()) == len(expected) > 5, "each window once"
