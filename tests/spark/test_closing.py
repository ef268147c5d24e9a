"""An app that ends with its input first closes what its last rows have made due by event time, step after step."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from springtide import App, agg, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.connectors.sinks import Memory
from springtide.engine.durability.spark_log import fit
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
START_S = 1_700_000_000.0
EACH, EPOCHS = 40, 3
SIZE_US, WIDE_US, LATE_US = 50_000, 200_000, 20_000
SOURCE = sources.generator(100, limit=EACH * EPOCHS, keys=3, start_s=START_S, max_rows_per_epoch=EACH)
Found = Counter[tuple[int, int]]


def windows_of_windows(out: Memory) -> App:
    """Rows are counted by key; counts that are final are counted for all keys; and so are those, in wider windows."""
    app = App("closing")
    keyed = app.source("rows", SOURCE).key_by("key")
    counted = keyed.window("event_time", timedelta(microseconds=SIZE_US), late=timedelta(microseconds=LATE_US))
    counts = counted.aggregate("counted", n=agg.count()).filter("whole", "final")
    by_all = counts.transform("all", lambda df: df.selectExpr("1 AS one", "n", "window_start AS at")).key_by("one")
    summed = by_all.window("at", timedelta(microseconds=WIDE_US)).aggregate("summed", n=agg.sum("n"))
    summed.sink("sums", out, mode="final")
    return app


def expected() -> Found:
    """By the start of each window that the watermark has passed in the end: its rows."""
    times = SOURCE.spec.rows(0, EACH * EPOCHS, START_S)["event_time"].cast("int64").to_numpy()
    starts = times // SIZE_US * SIZE_US
    over = starts[starts + SIZE_US <= times.max() - LATE_US]
    wide = over // WIDE_US * WIDE_US
    return Counter(Counter(wide[wide + WIDE_US <= over.max()].tolist()).items())


def found(out: Memory) -> Found:
    return Counter((round(row["window_start"].timestamp() * 1e6), row["n"]) for row in out.rows())


def rows_in(reports: list[EpochReport]) -> list[int]:
    """By epoch that was not there before; one without rows is one without input."""
    assert all(report.without_input == (report.rows_in == 0) for report in reports)
    return [report.rows_in for report in reports if not report.published_again]


class Place:
    """Where an app is run again and again."""

    def __init__(self, spark: "SparkSession", path: Path) -> None:
        self.spark, self.checkpoint = spark, path / "checkpoint"

    def run(self, app: App, until: str = "available", **options: Any) -> list[int]:
        return rows_in(app.run(self.spark, checkpoint=str(self.checkpoint), until=until, **options))


@pytest.fixture
def place(spark: "SparkSession", tmp_path: Path) -> Place:
    return Place(spark, tmp_path)


def test_windows_of_windows_close_in_the_run_that_reads_the_last_rows(place: Place) -> None:
    out = sinks.memory()
    assert place.run(windows_of_windows(out)) == [EACH] * EPOCHS + [0, 0], "one epoch more for each step"
    assert found(out) == expected()
    assert len(out.rows()) > 2, "else nothing was to be closed in the end"
    assert place.run(windows_of_windows(out)) == [], "nothing is new, and nothing is due"


def test_what_an_earlier_run_has_left_due_is_closed_without_new_rows(place: Place) -> None:
    out = sinks.memory()
    assert place.run(windows_of_windows(out), f"epochs={EPOCHS}") == [EACH] * EPOCHS
    assert found(out) != expected()
    assert place.run(windows_of_windows(out)) == [0, 0]
    assert found(out) == expected()


@pytest.mark.parametrize("epochs", [1, EPOCHS])
def test_a_checkpoint_whose_log_knows_of_no_nudges_goes_on(place: Place, epochs: int) -> None:
    """As apps that ended with their input wrote it once; and it may go on without them again."""
    out = sinks.memory()
    place.run(windows_of_windows(out), f"epochs={epochs}")
    fit(current(LocalStore(place.checkpoint)), 1, nudged=False)
    assert place.run(windows_of_windows(out)) == [EACH] * (EPOCHS - epochs) + [0, 0]
    assert found(out) == expected()
    fit(current(LocalStore(place.checkpoint)), 1, nudged=False)
    assert place.run(windows_of_windows(out)) == []


def test_no_epoch_comes_when_nothing_is_due(place: Place) -> None:
    """The window lasts longer than the input, and keys that the wall clock has made due are not waited for."""
    app, out = App("open"), sinks.memory()
    keyed = app.source("rows", SOURCE).key_by("key")
    keyed.window("event_time", "1 hour").aggregate("hours", n=agg.count()).sink("over", out, mode="final")
    keyed.aggregate("recent", n=agg.count(), ttl="1 millisecond").sink("counts", sinks.noop())
    assert place.run(app) == [EACH] * EPOCHS
    assert out.rows() == []
    assert place.run(app) == []
