"""Two streams that meet, on Spark: joins, co-reducers, a stream with itself; against plain Python, epoch by epoch."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from join_oracle import Bag, JoinOracle, multiset
from operators_kit import RunApp
from pyspark.sql import functions as F
from spark_kit import Row, bag, parquet_epochs

from springtide import App, sinks
from springtide.dataflow.errors import BadGraph, StepFailed

if TYPE_CHECKING:
    from springtide.connectors.sources import Files

pytestmark = pytest.mark.spark
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EPOCHS = 5
LEFT = pa.schema([("k", pa.string()), ("at", pa.timestamp("us", "UTC")), ("x", pa.int64())])
RIGHT = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("y", pa.int64())])
DDL = {"k": "k STRING, at TIMESTAMP, x BIGINT", "id": "id STRING, at TIMESTAMP, y BIGINT"}


def made(seed: int, key: str, value: str) -> list[list[Row]]:
    """Rows by epoch, with null keys, some of them late."""
    random_ = random.Random(seed)

    def row(epoch: int) -> Row:
        at = NOON + timedelta(seconds=round(epoch * 10 + random_.uniform(-12, 10), 2))
        return {key: random_.choice([None, *"abcdefgh"]), "at": at, value: random_.randrange(50)}

    return [[row(epoch) for _ in range(60)] for epoch in range(EPOCHS)]


def streams(place: Path) -> tuple[list[list[Row]], list[list[Row]], "Files", "Files"]:
    lefts, rights = made(1, "k", "x"), made(2, "id", "y")
    rights[2] = []
    left = parquet_epochs(place / "left", lefts, LEFT, DDL["k"])
    return lefts, rights, left, parquet_epochs(place / "right", rights, RIGHT, DDL["id"])


def test_streams_meet_in_every_epoch_as_they_should(run_app: RunApp, tmp_path: Path) -> None:
    lefts, rights, left_files, right_files = streams(tmp_path)
    app, joined, counted, selves = App("meet"), sinks.memory(), sinks.memory(), sinks.memory()
    late_left, late_right = sinks.memory(), sinks.memory()
    left, right = app.source("left", left_files).key_by("k"), app.source("right", right_files).key_by("id")
    span: dict[str, Any] = {"time": ("at", "at"), "within": ("-3 seconds", "5 seconds"), "late": "4 seconds"}
    joined_rows = left.join("joined", right, how="full", **span)
    joined_rows.sink("joined-rows", joined)

    def count(key: Row, some: list[Row], others: list[Row], state: Row | None) -> tuple[Row, list[Row]]:
        n = (state or {"n": 0})["n"] + sum(row["x"] for row in some) - sum(row["y"] for row in others)
        return {"n": n}, [{"k": key["k"], "n": n}]

    fields = {"k": str, "n": int}
    left.co_reduce("counted", right, count, state={"n": int}, output=fields).sink("counted-rows", counted)
    joined_rows.late.sink("late-left", late_left)
    joined_rows.late_of(1).filter("found", "y >= 0").sink("late-right", late_right)
    pairs = left.join("selves", left, time=("at", "at"), within=("1 second", "2 seconds"), late="1 hour")
    pairs.sink("pairs", selves)
    reports = run_app(app)

    dropped = [Bag(), Bag()]
    oracle, seen, found = JoinOracle("full", -3, 5, 4), Bag(), Bag()
    sums: dict[Any, int] = {}
    lefts, rights = [*lefts, []], [*rights, []]  # The last epoch is for what the others have made due.
    for epoch in range(EPOCHS + 1):
        oracle.epoch(lefts[epoch], rights[epoch])
        found += multiset(joined.epochs[epoch].to_pylist())
        assert found == oracle.expected(), epoch
        for rows, key, value, sign in ((lefts, "k", "x", 1), (rights, "id", "y", -1)):
            for row in rows[epoch]:
                sums[row[key]] = sums.get(row[key], 0) + sign * row[value]
        touched = {row["k"] for row in lefts[epoch]} | {row["id"] for row in rights[epoch]}
        assert bag(counted.epochs[epoch].to_pylist()) == bag({"k": k, "n": sums[k]} for k in touched)
        for side, out in enumerate((late_left, late_right)):
            dropped[side] += bag(out.epochs[epoch].to_pylist())
            assert dropped[side] == bag(oracle.dropped[side]), (epoch, side)
        seen += bag(selves.epochs[epoch].to_pylist())
    late = sum(o.late_rows for report in reports for o in report.operators if o.step == "joined")
    assert late == oracle.late > 0
    everybody = [row for rows in lefts for row in rows if row["k"] is not None]
    near = timedelta(seconds=1), timedelta(seconds=2)
    assert seen == bag(
        {"k": a["k"], "at": a["at"], "x": a["x"], "at_right": b["at"], "x_right": b["x"]}
        for a in everybody
        for b in everybody
        if a["k"] == b["k"] and near[0] <= b["at"] - a["at"] <= near[1]
    )
    assert [report.rows_in for report in reports] == [
        len(some) + len(others) for some, others in zip(lefts, rights, strict=True)
    ], "a stream that is joined with itself is read once"


def test_rows_of_a_stream_that_is_joined_with_itself_count_once(run_app: RunApp, tmp_path: Path) -> None:
    """In an app that may shed, tasks count the rows that they read."""
    lefts, _, left_files, _ = streams(tmp_path)
    app = App("itself")
    left = app.source("left", left_files).key_by("k")
    left.join("selves", left).sink("pairs", sinks.noop()).with_minimum_accuracy(0.5)
    reports = run_app(app)
    assert [report.rows_in for report in reports] == [query.offered for r in reports for query in r.queries]
    assert [report.rows_in for report in reports] == [len(rows) for rows in lefts]


def test_what_cannot_be_joined_is_refused_before_the_first_epoch(run_app: RunApp, tmp_path: Path) -> None:
    _, _, left_files, right_files = streams(tmp_path)

    def refused(*key: str, **options: Any) -> str:
        app = App("refused")
        left = app.source("left", left_files).transform("numbers", lambda df: df.withColumn("n", F.col("x")))
        right = app.source("right", right_files)
        left.key_by(key[0]).join("both", right.key_by(key[1]), **options).sink("out", sinks.noop())
        with pytest.raises((BadGraph, StepFailed)) as error:
            run_app(app)
        return str(error.value)

    assert refused("n", "id") == (
        "step 'both': expected keys of one type: cast one of them by a transform before the step, "
        "got 'n' int64 and 'id' string"
    )
    assert "expected key columns among ['id', 'at', 'y'], got ['k']" in refused("k", "k")
    times: dict[str, Any] = {"within": ("0 seconds", "1 second")}
    assert "column 'x' of the left stream to be a timestamp, got int64" in refused("k", "id", time=("x", "at"), **times)
