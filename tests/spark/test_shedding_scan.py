"""Records are shed in the scan: nobody looks into them, and every one is accounted for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark_kit import bag

from springtide import App, agg, sinks, sources
from springtide.connectors.sinks import Memory
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RECORDS, SHARE = 400, 0.5
SCHEMA = "id BIGINT, k STRING"
GARBAGE = "garbage "


def run_shedding(
    spark: "SparkSession", app: App, place: Path, lines: Sequence[str], accuracies: dict[str, float]
) -> EpochReport:
    """One epoch over a file of these lines, with accuracies that hold before it comes."""
    place.mkdir()
    running = app.start(spark, checkpoint=str(place.with_name("cp")), until="epochs=1")
    running.shed(accuracies)
    staged = place.with_name("staged")
    staged.write_text("".join(f"{line}\n" for line in lines))
    staged.rename(place / "0.json")
    (report,) = running.wait()
    return report


def lines(malformed: int = 0) -> list[str]:
    """Records; with `malformed` at 3, every third of them is garbage."""
    good = [json.dumps({"id": n, "k": "abcdefgh"[n % 8]}) for n in range(RECORDS)]
    return [f"{GARBAGE}{n}" if malformed and n % malformed == 0 else line for n, line in enumerate(good)]


def kept(spark: "SparkSession", source: str, file: Path) -> list[str]:
    """The oracle: the lines of a file that half of all places keep, by a query over the file alone."""
    lot = f"(xxhash64('{source}', xxhash64(_metadata.file_path, value)) & {2**63 - 1}L)"
    found = spark.read.text(str(file)).filter(f"{lot} < {int(SHARE * 2**63)}L").collect()
    return [row.value for row in found]


def test_nobody_looks_into_a_record_that_is_shed(spark: "SparkSession", tmp_path: Path) -> None:
    app, out, place = App("unseen"), Memory(), tmp_path / "in"
    source = app.source("rows", sources.files(str(place), format="json", schema=SCHEMA, malformed="fail"))
    source.key_by("k").aggregate("count", n=agg.count()).sink("out", out).with_minimum_accuracy(0.0)
    report = run_shedding(spark, app, place, lines(malformed=1), {"out": 0.0})
    (query,) = report.queries
    assert (query.offered, query.processed, query.shed, query.dead_letters) == (RECORDS, 0, RECORDS, 0)
    assert report.rows_in == RECORDS
    assert out.rows() == []


def test_malformed_records_are_told_of_those_that_were_kept(spark: "SparkSession", tmp_path: Path) -> None:
    app, some, place = App("malformed"), Memory(), tmp_path / "in"
    source = app.source("rows", sources.files(str(place), format="json", schema=SCHEMA))
    source.filter("numbered", "id >= 0").sink("some", some).with_minimum_accuracy(0.1)
    given = lines(malformed=3)
    report = run_shedding(spark, app, place, given, {"some": SHARE})
    wanted = kept(spark, "rows", place / "0.json")
    good = [json.loads(line) for line in wanted if not line.startswith(GARBAGE)]
    assert bag(some.rows()) == bag(good)
    (query,) = report.queries
    assert (query.offered, query.processed) == (RECORDS, len(good))
    assert query.dead_letters == report.dead_letters == len(wanted) - len(good) > 0
    assert query.shed == RECORDS - len(wanted)
    assert query.accuracy == len(wanted) / RECORDS


def test_records_that_a_scan_parses_are_counted_once(spark: "SparkSession", tmp_path: Path) -> None:
    """Spark's own reader finds the malformed lines of CSV in the scan, and others are found after it."""
    app, out, place = App("parsed"), Memory(), tmp_path / "in"
    source = app.source("rows", sources.files(str(place), format="csv", schema=SCHEMA))
    source.filter("numbered", "id >= 0").sink("out", out).with_minimum_accuracy(0.1)
    given = [f"{GARBAGE}{n}" if n % 3 == 0 else f"{n},k" for n in range(RECORDS)]
    report = run_shedding(spark, app, place, given, {})
    malformed = sum(line.startswith(GARBAGE) for line in given)
    (query,) = report.queries
    assert (query.processed, query.shed, query.dead_letters) == (RECORDS - malformed, 0, malformed)
    assert report.dead_letters == malformed


def test_who_wants_all_gets_all_beside_who_wants_less(spark: "SparkSession", tmp_path: Path) -> None:
    """The scan sheds what nobody wants, and that is nothing here; the malformed are told to each as they concern it."""
    app, some, whole, place = App("beside"), Memory(), Memory(), tmp_path / "in"
    source = app.source("rows", sources.files(str(place), format="json", schema=SCHEMA))
    source.filter("numbered", "id >= 0").sink("some", some).with_minimum_accuracy(0.1)
    source.filter("all", "id >= 0").sink("whole", whole)
    given = lines(malformed=3)
    report = run_shedding(spark, app, place, given, {"some": SHARE})
    wanted = kept(spark, "rows", place / "0.json")
    accounts: dict[str, Any] = {query.query: query for query in report.queries}
    for sink, expected, name in ((some, wanted, "some"), (whole, given, "whole")):
        good = [json.loads(line) for line in expected if not line.startswith(GARBAGE)]
        assert bag(sink.rows()) == bag(good)
        assert (accounts[name].processed, accounts[name].dead_letters) == (len(good), len(expected) - len(good))
        assert accounts[name].shed == RECORDS - len(expected)
    assert report.dead_letters == accounts["whole"].dead_letters


def test_an_account_takes_no_job(spark: "SparkSession", tmp_path: Path) -> None:
    """An epoch that sheds has as many jobs as one of an app that can't."""
    jobs = {}
    for name, share in (("sheds", 0.5), ("exact", None)):
        app, place = App(name), tmp_path / name / "in"
        source = app.source("rows", sources.files(str(place), format="json", schema=SCHEMA))
        sink = source.key_by("k").aggregate("count", n=agg.count()).sink("out", sinks.noop())
        if share is not None:
            sink.with_minimum_accuracy(0.1)
        place.parent.mkdir()
        before = last_job(spark)
        report = run_shedding(spark, app, place, lines(), {} if share is None else {"out": share})
        jobs[name] = last_job(spark) - before
        assert bool(report.queries) == (share is not None)
    assert jobs["sheds"] == jobs["exact"]


def last_job(spark: "SparkSession") -> int:
    """The number of a job that does nothing."""
    context = spark.sparkContext
    context.setJobGroup("mark", "mark")
    context.parallelize([0], 1).count()
    return max(context.statusTracker().getJobIdsForGroup("mark"))
