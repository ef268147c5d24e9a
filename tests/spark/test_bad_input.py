"""Bad input and bad code: an error that names the step, nothing lost, and the app goes on once it is repaired."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from chaos_kit import manifest_path
from spark_kit import Row, alive, bag, generator, in_order, parquet_epochs

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.errors import BadValue
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]


GOOD = [
    [{"user": "ann", "n": 1}, {"user": "bob", "n": 2}, {"user": "ann", "n": 3}],
    [{"user": "bob", "n": 4}, {"user": None, "n": 5}],
]
NOT_ONE_OBJECT = [
    '{"user": "dan", "n": 1} and more',
    '{"user": "dan", "n": 1}{"user": "eve", "n": 2}',
    '{"user": "dan", "n": 1},{"user": "eve", "n": 2}',
    '{"user": "dan", "n": 1}}',
    '{"user": "dan", "n": 1}]',
    '{"user": "dan", "n": 1},"record":{"user": "eve", "n": 2}',
    '{"user": "dan", "n": 1}],"record":[{"user": "eve", "n": 2}',
    '{"user": "dan", "n": 1}]} {"end":1',
    "{'user': 'dan', 'n': 1}",
    '{user: "dan", "n": 1}',
    '[{"user": "dan", "n": 1}]',
    "[]",
    "null",
    '"dan"',
    "12",
    '{"user": "dan\ufffe\udcff", "n": 1}',
    '{"user": "dan", "n": 1,}',
    '{"user": "dan", "n": 1} // a note',
]
"""Lines that a lenient parser takes for something. (A lone surrogate stands for a byte that is no UTF-8.)"""
BAD = [
    ['{"user": "ann", "n": "many"}', "not json at all"],
    ['{"user": "bob", "n": 7', "[1, 2", '{"user": "cid", "n": 1.5}', *NOT_ONE_OBJECT],
]


def json_lines(directory: Path, bad: list[list[str]]) -> list[Path]:
    """One file an epoch: good lines, bad ones between them, and a blank one, which is no record."""
    directory.mkdir()
    paths = []
    for number, (good, wrong) in enumerate(zip(GOOD, bad, strict=True)):
        lines = [json.dumps(row) for row in good]
        paths.append(directory / f"{number}.json")
        text = "\n".join([lines[0], *wrong, "", "  ", *lines[1:]]) + "\n"
        paths[-1].write_text(text, errors="surrogateescape")
        in_order(paths[-1], number)
    return paths


def json_app(directory: Path, malformed: Any, raw: sinks.Memory, counts: sinks.Memory) -> App:
    app = App("json")
    schema = "user STRING, n BIGINT"
    files = sources.files(str(directory), format="json", schema=schema, malformed=malformed, maxFilesPerTrigger="1")
    rows = app.source("lines", files)
    rows.sink("raw", raw)
    rows.key_by("user").aggregate("count", c=agg.count(), total=agg.sum("n")).sink("counts", counts)
    return app


def test_malformed_records_are_counted(run_app: RunApp, tmp_path: Path) -> None:
    """Fault 27: each record is either processed or a dead letter, once, however many steps read the source."""
    json_lines(tmp_path / "in", BAD)
    raw, counts = sinks.memory(), sinks.memory()
    reports = run_app(json_app(tmp_path / "in", "count", raw, counts))
    assert {e: bag(t.to_pylist()) for e, t in raw.epochs.items()} == {e: bag(rows) for e, rows in enumerate(GOOD)}
    assert {r["user"]: (r["c"], r["total"]) for r in counts.rows()} == {"ann": (2, 4), "bob": (2, 6), None: (1, 5)}
    assert [report.dead_letters for report in reports] == [2, 3 + len(NOT_ONE_OBJECT)]
    assert [report.rows_in for report in reports] == [5, 5 + len(NOT_ONE_OBJECT)], "malformed records were given, too"


def test_malformed_records_stop_a_strict_app(run_app: RunApp, spark: "SparkSession", tmp_path: Path) -> None:
    """Fault 27 in strict mode: the epoch is not committed, and goes through once the file is repaired."""
    paths = json_lines(tmp_path / "in", [[], BAD[1]])
    raw, counts = sinks.memory(), sinks.memory()
    app, checkpoint = json_app(tmp_path / "in", "fail", raw, counts), tmp_path / "checkpoint"
    with pytest.raises(StepFailed, match="expected one JSON object of its schema in a line of") as failed:
        run_app(app, checkpoint=str(checkpoint))
    assert failed.value.step == "lines"
    reason = failed.value.reason
    assert str(paths[1]) in reason
    assert BAD[1][0] in reason
    assert "\n" not in reason, "no Java stack"
    assert list(raw.epochs) == [0]
    assert not manifest_path(checkpoint, 1).exists()
    paths[1].write_text("".join(json.dumps(row) + "\n" for row in GOOD[1]))
    in_order(paths[1], 1)
    run_app(app, checkpoint=str(checkpoint))
    assert {e: bag(t.to_pylist()) for e, t in raw.epochs.items()} == {e: bag(rows) for e, rows in enumerate(GOOD)}
    assert alive(spark)


def test_a_lenient_source_takes_what_spark_takes(run_app: RunApp, tmp_path: Path) -> None:
    """Text after an object, an array of objects, single quotes: by option, and no dead letters."""
    (tmp_path / "in").mkdir()
    lines = ["{'user': 'ann', 'n': 1} and more", '[{"user": "bob", "n": 2}, {"user": "cid", "n": 3}]']
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    app, out = App("lenient"), sinks.memory()
    files = sources.files(str(tmp_path / "in"), format="json", schema="user STRING, n BIGINT", lenient=True)
    app.source("lines", files).sink("out", out)
    assert [report.dead_letters for report in run_app(app)] == [0]
    assert bag(out.rows()) == bag({"user": user, "n": n} for n, user in enumerate(("ann", "bob", "cid"), start=1))
    with pytest.raises(BadValue, match="lenient is for files of JSON"):
        sources.files("any", format="csv", schema="n INT", lenient=True)


def test_a_source_none_of_whose_rows_are_needed(run_app: RunApp, tmp_path: Path) -> None:
    """Spark then does not read them, and there is nothing to count."""
    json_lines(tmp_path / "in", BAD)
    app, out = App("unneeded"), sinks.memory()
    files = sources.files(str(tmp_path / "in"), format="json", schema="user STRING, n BIGINT")
    app.source("lines", files).filter("none", "1 = 0").sink("out", out)
    assert [report.dead_letters for report in run_app(app)] == [0]
    assert out.rows() == []


def test_a_user_function_that_raises(run_app: RunApp, spark: "SparkSession", tmp_path: Path) -> None:
    """Fault 32: the error names the step and the function's own line; the fixed code goes on exactly once."""
    broken = {"step": ""}
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    epochs = [[{"id": 10 * e + i, "k": "ab"[i % 2]} for i in range(6)] for e in range(3)]
    raw, sums, seen = sinks.memory(), sinks.memory(), {}

    def built() -> App:
        failing = broken["step"]

        def trim(df: "DataFrame") -> "DataFrame":
            if failing == "trim" and "epoch-1" in seen:
                raise KeyError("no such table")
            return df.select("id", "k")

        def halve(table: pa.Table) -> pa.Table:
            if failing == "halve" and 10 in table["id"].to_pylist():
                raise ZeroDivisionError("halves")
            return table

        def add(key: Row, rows: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
            if failing == "add" and any(row["id"] == 11 for row in rows):
                raise LookupError("eleven")
            total = sum(row["id"] for row in rows) + (state["total"] if state else 0)
            return {"total": total}, [{"k": key["k"], "total": total}]

        def show(df: "DataFrame", epoch: int) -> None:
            if failing == "show" and epoch == 1:
                raise RuntimeError("no printer")
            seen[f"epoch-{epoch}"] = df.count()
            if epoch == 0:
                seen["epoch-1"] = 0

        app = App("raises")
        rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, schema, "id BIGINT, k STRING"))
        halved = rows.transform("trim", trim).map_batches("halve", halve, schema)
        halved.sink("raw", raw)
        reduced = halved.key_by("k").reduce("add", add, state={"total": int}, output={"k": str, "total": int})
        reduced.sink("sums", sums)
        reduced.sink("show", sinks.foreach_epoch(show))
        return app

    checkpoint = tmp_path / "checkpoint"
    for step, error in (
        ("trim", "KeyError: 'no such table'"),
        ("halve", "ZeroDivisionError: halves"),
        ("add", "LookupError: eleven"),
        ("show", "RuntimeError: no printer"),
    ):
        broken["step"] = step
        with pytest.raises(StepFailed) as failed:
            run_app(built(), checkpoint=str(checkpoint))
        assert (failed.value.step, failed.value.reason) == (step, error)
        assert f"step '{step}' failed while" in str(failed.value)
        if step in ("halve", "add"):
            assert f"{Path(__file__).name}:" in failed.value.hint, "the line of the function that failed"
        # A sink comes after the commit: its epoch is committed, and published once the sink is repaired.
        assert manifest_path(checkpoint, 1).exists() == (step == "show")
        assert alive(spark)
    broken["step"] = ""
    run_app(built(), checkpoint=str(checkpoint))
    assert {e: bag(t.to_pylist()) for e, t in raw.epochs.items()} == {e: bag(rows) for e, rows in enumerate(epochs)}
    so_far = {"a": 0, "b": 0}
    for epoch, rows in enumerate(epochs):
        for row in rows:
            so_far[row["k"]] += row["id"]
        assert bag(sums.epochs[epoch].to_pylist()) == bag({"k": k, "total": total} for k, total in so_far.items())
    assert seen == {"epoch-0": 2, "epoch-1": 2, "epoch-2": 2}


def test_a_graph_that_does_not_fit_its_columns(run_app: RunApp, spark: "SparkSession", tmp_path: Path) -> None:
    """Found before the first epoch, and before anything is written."""

    def attempt(build: Callable[[Any], Any], match: str, kind: type[Exception]) -> None:
        app = App("misfit")
        build(app.source("rows", generator(1))).sink("out", sinks.noop())
        with pytest.raises(kind, match=match):
            run_app(app, checkpoint=str(tmp_path / "checkpoint"))
        assert not (tmp_path / "checkpoint").exists()

    attempt(
        lambda rows: rows.key_by("user").aggregate("count", n=agg.count()),
        r"step 'count': expected key columns among \['id', 'key', .* got \['user'\]",
        BadGraph,
    )
    attempt(
        lambda rows: rows.key_by("key").aggregate("most", n=agg.max("price")),
        r"step 'most': expected n= an aggregate of a column among .* got 'price'",
        BadGraph,
    )
    attempt(
        lambda rows: rows.key_by("key").window("id", "5 seconds").aggregate("windows", n=agg.count()),
        "step 'windows' .*'id' to be a timestamp, got int64",
        StepFailed,
    )
    attempt(
        lambda rows: (
            rows.transform("lists", lambda df: df.selectExpr("array(key) AS keys"))
            .key_by("keys")
            .aggregate("count", n=agg.count())
        ),
        "step 'count' .*'keys' has type list.*can't be a key",
        StepFailed,
    )
    attempt(
        lambda rows: (
            rows.transform("named", lambda df: df.withColumn("__Springtide_Hash", df.id))
            .key_by("key")
            .aggregate("count", n=agg.count())
        ),
        r"step 'count': expected no columns named '__springtide_hash' .* got \['__Springtide_Hash'\]",
        BadGraph,
    )
    attempt(
        lambda rows: rows.filter("few", "price < 3"),
        r"(?s)step 'few' failed while building its DataFrame: .*price",
        StepFailed,
    )
    assert alive(spark)


def test_final_rows_of_a_stream_without_windows() -> None:
    counts = App("final").source("rows", generator(1)).key_by("key").aggregate("count", n=agg.count())
    with pytest.raises(BadGraph, match=r"step 'out': expected a windowed .*step 'count', whose rows are never final"):
        counts.sink("out", sinks.noop(), mode="final")


def test_a_source_that_is_no_stream(spark: "SparkSession") -> None:
    with pytest.raises(BadGraph, match=r"step 'rows': expected a streaming DataFrame .* got a batch DataFrame"):
        App("batch").source("rows", spark.range(3))
