"""Shedding through Spark: who gets which rows, and that every row is accounted for."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_kit import Row, bag, parquet_epochs

from springtide import App, agg, sinks, sources
from springtide.connectors.sinks import Memory
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.metrics.report import EpochReport, QueryReport
from springtide.migration.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
EPOCHS, EPOCH_ROWS = 4, 500
SPLIT = "spark.sql.files.maxPartitionBytes"


def rows(first: int, same: bool = False) -> list[list[Row]]:
    """Epochs of rows; with `same`, all alike but for their place."""
    return [
        [{"id": 0 if same else first + e * EPOCH_ROWS + n, "k": "abcdefgh"[n % 8]} for n in range(EPOCH_ROWS)]
        for e in range(EPOCHS)
    ]


class Bench:
    """Two sources in a union; rows as they are, counts by key, and all rows of one source."""

    def __init__(self, tmp_path: Path, *, same: bool = False) -> None:
        self.app = App("shedding")
        self.raw, self.counts, self.all, self.later = Memory(), Memory(), Memory(), Memory()
        self.given = {"left": rows(0, same), "right": rows(1_000_000, same)}
        left, right = (
            self.app.source(name, parquet_epochs(tmp_path / name, given, SCHEMA, "id BIGINT, k STRING"))
            for name, given in self.given.items()
        )
        both = left.union("both", right)
        both.sink("raw", self.raw).with_minimum_accuracy(0.1)
        counted = both.key_by("k").aggregate("count", n=agg.count())
        counted.sink("counts", self.counts).with_minimum_accuracy(0.2).with_priority(2)
        counted.key_by("k").aggregate("again", n=agg.count()).sink("later", self.later).with_minimum_accuracy(0.0)
        left.filter("some", "id >= 0").sink("all", self.all)

    def run(self, spark: "SparkSession", checkpoint: Path, accuracies: Mapping[str, float]) -> list[EpochReport]:
        running = self.app.start(spark, checkpoint=str(checkpoint), until="available", instances=2)
        running.shed(accuracies)
        return running.wait()


def account(report: EpochReport, query: str) -> QueryReport:
    return next(q for q in report.queries if q.query == query)


def exact(report: EpochReport) -> bool:
    return all(q.offered == q.processed + q.shed + q.dead_letters for q in report.queries)


def shed_epochs(reports: list[EpochReport]) -> list[EpochReport]:
    return [r for r in reports if account(r, "raw").shed]


def test_each_query_gets_its_share_and_nothing_is_unaccounted_for(spark: "SparkSession", tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    reports = bench.run(spark, tmp_path / "cp", {"raw": 0.3, "counts": 0.6, "later": 0.3})
    assert len(reports) == EPOCHS
    assert all(map(exact, reports))
    assert len(shed_epochs(reports)) >= EPOCHS - 1
    counted: Counter[str] = Counter()
    for report in reports:
        raw = bench.raw.epochs[report.epoch].to_pylist()
        offered = [row for given in bench.given.values() for row in given[report.epoch]]
        assert account(report, "raw").offered == len(offered) == 2 * EPOCH_ROWS
        assert account(report, "raw").processed == len(raw)
        assert not bag(raw) - bag(offered), "what is kept was offered, and no more often"
        assert bag(bench.all.epochs[report.epoch].to_pylist()) == bag(bench.given["left"][report.epoch])
        assert (account(report, "all").shed, account(report, "all").accuracy) == (0, 1.0)
        counted.update({row["k"]: 0 for row in offered})
    for report in shed_epochs(reports):
        raw, counts = account(report, "raw"), account(report, "counts")
        # 1 000 rows: five standard deviations are less than 0.08.
        assert (raw.accuracy, counts.accuracy) == (pytest.approx(0.3, abs=0.08), pytest.approx(0.6, abs=0.08))
        kept = [row["id"] for row in bench.raw.epochs[report.epoch].to_pylist()]
        lefts = sum(1 for number in kept if number < 1_000_000)
        assert lefts / EPOCH_ROWS == pytest.approx(0.3, abs=0.11), "both sources of a union give the same share"
        later = account(report, "later")
        assert later.processed == counts.processed, "it is told of the rows that the step before it got"
        assert later.accuracy <= counts.accuracy
    last: dict[str, int] = {}
    for epoch in sorted(bench.counts.epochs):
        last |= {row["k"]: row["n"] for row in bench.counts.epochs[epoch].to_pylist()}
    assert sum(last.values()) == sum(account(report, "counts").processed for report in reports)


def test_equal_rows_do_not_share_one_fate(spark: "SparkSession", tmp_path: Path) -> None:
    bench = Bench(tmp_path, same=True)
    for report in shed_epochs(bench.run(spark, tmp_path / "cp", {"raw": 0.5})):
        kept = Counter(row["k"] for row in bench.raw.epochs[report.epoch].to_pylist())
        assert len(kept) == 8
        assert account(report, "raw").accuracy == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_same_rows_are_shed_however_files_are_split(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    """A repeated epoch may be read by other tasks, on another number of cores."""
    given, place, made = pa.Table.from_pylist(rows(0)[0], SCHEMA), tmp_path / "rows", tmp_path / f"0.{kind}"
    if kind == "json":
        made.write_text("".join(f"{json.dumps(row)}\n" for row in given.to_pylist()))
    else:
        pq.write_table(given, made, row_group_size=50)
    kept = []
    before = spark.conf.get(SPLIT)
    for size in ("128m", "1k"):
        app, out = App("split"), Memory()
        source = app.source("rows", sources.files(str(place), format=kind, schema="id BIGINT, k STRING"))
        source.filter("some", "id >= 0").sink("out", out).with_minimum_accuracy(0.1)
        try:
            spark.conf.set(SPLIT, size)
            place.mkdir()
            running = app.start(spark, checkpoint=str(tmp_path / size), until="epochs=1")
            running.shed({"out": 0.5})  # Before there is anything to shed.
            os.link(made, place / made.name)
            (report,) = running.wait()
        finally:
            spark.conf.set(SPLIT, before)
            shutil.rmtree(place)
        assert report.queries[0].shed > 0
        assert out.epochs[0].column_names == ["id", "k"], "nothing is left of what told rows apart"
        kept.append(sorted(row["id"] for row in out.epochs[0].to_pylist()))
    assert kept[0] == kept[1]


def test_what_one_query_keeps_one_that_keeps_more_keeps_too(spark: "SparkSession", tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    reports = bench.run(spark, tmp_path / "cp", {"raw": 0.4, "counts": 0.7})
    counted: Counter[str] = Counter()
    for report in reports:
        before = Counter(counted)
        for row in bench.counts.epochs[report.epoch].to_pylist():
            counted[row["k"]] = row["n"]
        raw = Counter(row["k"] for row in bench.raw.epochs[report.epoch].to_pylist())
        assert not raw - (counted - before)


def test_an_estimate_knows_what_was_shed_before_it(spark: "SparkSession", tmp_path: Path) -> None:
    app, counts = App("estimates"), Memory()
    given = sources.generator(1000, limit=EPOCHS * EPOCH_ROWS, keys=8, start_s=0.0, max_rows_per_epoch=EPOCH_ROWS)
    counted = app.source("rows", given).key_by("key").aggregate("count", n=agg.count(estimate=True))
    counted.sink("counts", counts).with_minimum_accuracy(0.0)
    running = app.start(spark, checkpoint=str(tmp_path / "cp"), until="available")
    running.shed({"counts": 0.5})
    reports = running.wait()
    assert sum(report.queries[0].shed for report in reports) > 0
    truth = Counter(given.spec.rows(0, EPOCHS * EPOCH_ROWS, 0.0)["key"].to_pylist())
    last = {row["key"]: row for row in counts.rows()}
    held = [last[k]["n_low"] <= truth[k] <= last[k]["n_high"] for k in truth]
    # Each of the 8 fails once in 20 times, and the rows that are shed are always the same.
    assert sum(held) >= 7
    processed = sum(report.queries[0].processed for report in reports)
    estimated = sum(row["n"] * row["n_accuracy"] for row in last.values())
    assert estimated == pytest.approx(processed, rel=0.01)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"raw": 0.05}, "from its minimum of 0.1 to 1, got 0.05"),
        ({"all": 0.9}, "from its minimum of 1 to 1, got 0.9"),
        ({"raw": 1.5}, "got 1.5"),
        ({"nobody": 0.5}, "expected a query among raw, counts, later, all, got 'nobody'"),
    ],
)
def test_no_query_is_shed_below_its_minimum(
    spark: "SparkSession", tmp_path: Path, wanted: dict[str, Any], told: str
) -> None:
    bench = Bench(tmp_path)
    running = bench.app.start(spark, checkpoint=str(tmp_path / "cp"))
    try:
        with pytest.raises(Refused) as refused:
            running.shed(wanted)
    finally:
        running.stop()
    assert told in str(refused.value)


def test_rows_that_are_worth_least_go_first(spark: "SparkSession", tmp_path: Path) -> None:
    app, kept, given = App("worth"), Memory(), rows(0)
    source = parquet_epochs(tmp_path / "rows", given, SCHEMA, "id BIGINT, k STRING")
    worth = "CASE k WHEN 'a' THEN 100.5 WHEN 'b' THEN 7 WHEN 'c' THEN double('NaN') WHEN 'd' THEN NULL ELSE -1 END"
    stream = app.source("rows", source, utility=worth)
    stream.sink("kept", kept).with_minimum_accuracy(0.0)
    running = app.start(spark, checkpoint=str(tmp_path / "cp"), until="available")
    running.shed({"kept": 0.5})
    reports = [report for report in running.wait() if report.queries[0].shed]
    assert reports
    for report in reports:
        offered = Counter(row["k"] for row in given[report.epoch])
        got = Counter(row["k"] for row in kept.epochs[report.epoch].to_pylist())
        assert exact(report)
        assert (got["a"], got["b"]) == (offered["a"], offered["b"]), "worth more than all others"
        assert (got["c"], got["d"]) == (0, 0), "what is no number is worth least"
        # A quarter of the rows is worth more, a half is worth -1: a half of those is needed.
        assert report.queries[0].accuracy == pytest.approx(0.5, abs=0.08)


def test_a_utility_that_can_not_be_meant_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    source = parquet_epochs(tmp_path / "rows", rows(0), SCHEMA, "id BIGINT, k STRING")
    app = App("nonsense")
    app.source("rows", source, utility="fare").sink("out", sinks.noop())
    with pytest.raises(StepFailed, match="step 'rows' failed while reading its utility 'fare'"):
        app.start(spark, checkpoint=str(tmp_path / "cp"))
    with pytest.raises(BadGraph, match="an SQL expression"):
        App("empty").source("rows", source, utility=" ")
    app = App("both")
    stream = app.source("rows", source, utility="id")
    stream.key_by("k").aggregate("count", n=agg.count(estimate=True)).sink("out", sinks.noop())
    with pytest.raises(BadGraph, match="which sheds by utility and not by chance, got estimates"):
        app.start(spark, checkpoint=str(tmp_path / "cp"))


def test_epochs_that_are_repeated_shed_the_same_rows(spark: "SparkSession", tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    local = tmp_path / "local"
    wiped: list[int] = []

    def wipe(report: EpochReport) -> None:
        if report.epoch == 2 and not wiped:
            wiped.append(report.epoch)
            running.shed(dict.fromkeys(("raw", "counts", "later"), 0.9))
            shutil.rmtree(local)

    running = bench.app.start(
        spark, checkpoint=str(tmp_path / "cp"), local=str(local), until="available", durable_every=100, on_epoch=wipe
    )
    running.shed(dict.fromkeys(("raw", "counts", "later"), 0.5))
    reports = running.wait()
    assert [report.epoch for report in reports if report.replayed] == [0, 1, 2], "all state was lost"
    before = {report.epoch: report.queries for report in reports if not report.replayed and report.epoch <= 2}
    again = {report.epoch: report.queries for report in reports if report.replayed}
    assert again == before
    # Rows were published once, with the shares of then; counts were made anew.
    published = Counter(row["k"] for row in bench.raw.rows())
    counted = {row["k"]: row["n"] for row in bench.counts.rows()}
    assert counted == published
    assert account(reports[-1], "raw").accuracy > 0.8 > account(reports[1], "raw").accuracy
