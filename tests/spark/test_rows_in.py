"""The rows that an epoch reports are those that its sources gave, whatever the graph does with them."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from spark_kit import in_order, parquet_epochs

from springtide import App, agg, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.cli.shared.outcome import Outcome
from springtide.connectors.sources import Files
from springtide.errors import BadValue
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]

SIZES = [300, 0, 170]
"""The rows of each epoch."""


def numbers(directory: Path, sizes: list[int] = SIZES) -> Files:
    """Files of ascending numbers, each of which is an epoch."""
    rows = [[{"n": n} for n in range(size)] for size in sizes]
    return parquet_epochs(directory, rows, pa.schema([("n", pa.int64())]), "n BIGINT")


def few(rows: "DataFrame") -> "DataFrame":
    """A tenth of the rows."""
    return rows.filter("n % 10 = 0")


def counted(app: App, name: str, source: str, files: Files) -> None:
    """A source, a filter, a count."""
    rows = app.source(source, files).transform(f"few_{name}", few)
    rows.key_by("n").aggregate(name, c=agg.count()).sink(f"out_{name}", sinks.noop())


def test_a_filter_before_the_keyed_step(run_app: RunApp, tmp_path: Path) -> None:
    app = App("filtered")
    counted(app, "count", "rows", numbers(tmp_path / "rows"))
    reports = run_app(app)
    assert [r.rows_in for r in reports] == SIZES
    assert [r.operators[0].rows_in for r in reports] == [30, 0, 17]
    assert [r.sources[0].rows_in for r in reports] == SIZES
    assert reports[0].elapsed_s == reports[0].phases.total_s, "nothing came before it"
    pauses = [(late.ended_at - early.ended_at, late.elapsed_s) for early, late in pairwise(reports)]
    assert all(elapsed == pytest.approx(ended, abs=0.05) for ended, elapsed in pauses)


def test_two_sources_into_two_steps(run_app: RunApp, tmp_path: Path) -> None:
    """One of them generated: it is counted by the same rule."""
    app = App("twofold")
    counted(app, "one", "left", numbers(tmp_path / "left"))
    spec = sources.generator(1000, keys=5, limit=130, start_s=0.0)
    right = app.source("right", spec).transform("some", lambda rows: rows.filter("key < 2"))
    right.key_by("key").aggregate("two", c=agg.count()).sink("out_two", sinks.noop())
    reports = run_app(app)
    given = [{source.name: source.rows_in for source in report.sources} for report in reports]
    assert sum(epoch["left"] or 0 for epoch in given) == sum(SIZES)
    assert sum(epoch["right"] or 0 for epoch in given) == 130
    assert [r.rows_in for r in reports] == [sum(count or 0 for count in epoch.values()) for epoch in given]


def test_a_diamond(run_app: RunApp, tmp_path: Path) -> None:
    app = App("diamond")
    rows = app.source("rows", numbers(tmp_path / "rows"))
    left = rows.transform("third", lambda frame: frame.filter("n % 3 = 0"))
    right = rows.transform("doubled", lambda frame: frame.withColumn("n", F.explode(F.array("n", "n"))))
    left.union("both", right).key_by("n").aggregate("count", c=agg.count()).sink("out", sinks.noop())
    right.key_by("n").aggregate("beside", c=agg.count()).sink("out_beside", sinks.noop())
    reports = run_app(app)
    assert [r.rows_in for r in reports] == SIZES
    reached = {operator.step: operator.rows_in for operator in reports[0].operators}
    assert reached == {"count": 700, "beside": 600}, "a step counts the rows that reach it"


def test_sinks_on_stateless_branches(run_app: RunApp, tmp_path: Path) -> None:
    """Nothing is kept between two branches that read the source on their own."""
    app = App("stateless")
    rows = app.source("rows", numbers(tmp_path / "rows"))
    rows.transform("few", few).sink("out_few", sinks.noop())
    rows.transform("none", lambda frame: frame.filter("n < 0")).sink("out_none", sinks.noop())
    rows.sink("out_all", sinks.noop())
    assert [r.rows_in for r in run_app(app)] == SIZES


def test_records_that_do_not_fit_were_given_too(run_app: RunApp, tmp_path: Path) -> None:
    app = App("malformed")
    (tmp_path / "rows").mkdir()
    lines = [json.dumps({"n": n}) for n in range(20)] + ["not a record"] * 3
    for number in range(2):
        path = tmp_path / "rows" / f"{number}.json"
        path.write_text("\n".join(lines))
        in_order(path, number)
    files = sources.files(str(tmp_path / "rows"), format="json", schema="n BIGINT", maxFilesPerTrigger="1")
    counted(app, "count", "rows", files)
    assert [(r.rows_in, r.dead_letters) for r in run_app(app)] == [(23, 3), (23, 3)]


def test_an_epoch_that_is_only_published_again(run_app: RunApp, tmp_path: Path) -> None:
    """Its rows are not read: offsets tell of them, where they do, and no total counts them again."""
    app = App("again")
    spec = sources.generator(1000, keys=5, limit=200, start_s=0.0, max_rows_per_epoch=100)
    app.source("rows", spec).key_by("key").aggregate("count", c=agg.count()).sink("out", sinks.noop())
    checkpoint = tmp_path / "checkpoint"
    first = run_app(app, checkpoint=str(checkpoint))
    for name in ("1", ".1.crc"):  # As if the driver had ended before Spark could log the epoch as done.
        Path(current(LocalStore(checkpoint)).url, "spark", "commits", name).unlink(missing_ok=True)
    (again,) = run_app(app, checkpoint=str(checkpoint))
    assert (again.epoch, again.replayed, again.published_again, again.rows_in) == (1, True, True, 100)
    assert str(Outcome.of(first)) == " after 2 epochs and 200 rows"
    assert str(Outcome.of([again])) == ": 1 epoch was published again, and there was nothing new"


def test_an_app_keeps_its_last_reports_and_counts_them_all(run_app: RunApp) -> None:
    app = App("weeks")
    spec = sources.generator(1000, keys=5, limit=60, start_s=0.0, max_rows_per_epoch=10)
    app.source("rows", spec).key_by("key").aggregate("count", c=agg.count()).sink("out", sinks.noop())
    told: list[int] = []
    found = run_app(app, keep_reports=2, until="epochs=5", on_epoch=lambda report: told.append(report.epoch))
    assert told == [0, 1, 2, 3, 4], "the end is counted, though reports are not kept"
    assert [report.epoch for report in found] == [3, 4]
    assert app._running is not None
    assert app._running.totals.count("rows_total") == 50
    with pytest.raises(BadValue, match="keep_reports: expected at least 1, got 0"):
        run_app(app, keep_reports=0)


def test_a_streaming_dataframe_of_the_users_own(run_app: RunApp) -> None:
    def opened(spark: "SparkSession") -> "DataFrame":
        rate = spark.readStream.format("rate-micro-batch").options(rowsPerBatch="250", numPartitions="3")
        return rate.load().selectExpr("value AS n")

    app = App("own")
    app.source("rows", opened).transform("few", few).key_by("n").aggregate("c", c=agg.count()).sink("o", sinks.noop())
    assert [r.rows_in for r in run_app(app, until="epochs=2")] == [250, 250]
