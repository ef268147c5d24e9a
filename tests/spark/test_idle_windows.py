"""Input stops: what its last rows have made due comes all the same, and then the app is at rest."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import wait_until

from springtide import App, agg, sinks, sources
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS, EACH = 120, 40
SIZE_S = 0.1


def test_windows_and_sessions_close_when_input_has_stopped(spark: "SparkSession", tmp_path: Path) -> None:
    """Three epochs of 0.4 s of event time each, and one without rows, for what the third one has made due."""
    source = sources.generator(100, limit=ROWS, keys=1, start_s=1_700_000_000.0, max_rows_per_epoch=EACH)
    app, windows, sessions = App("stops"), sinks.memory(), sinks.memory()
    rows = app.source("rows", source)
    counted = rows.key_by("key").window("event_time", f"{SIZE_S} seconds").aggregate("windows", n=agg.count())
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
    found: Counter[Any] = Counter(row["window_start"] for row in windows.rows())
    assert len(found) == ROWS / 100 / SIZE_S - 1, "the last window is still open"
    assert set(found.values()) == {1}
    assert all(row["n"] == 100 * SIZE_S for row in windows.rows())
