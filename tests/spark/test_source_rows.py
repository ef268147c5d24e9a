"""The rows of each source of a micro-batch, read without those of the others: it relies on how Spark makes a union."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F
from spark_kit import parquet_epochs

from springtide import App, agg, sinks
from springtide.engine.epoch import compute, dataframes
from springtide.engine.spark.internals import Nudges, SourceRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SCHEMA = pa.schema({"n": pa.int64()})
Rows = dict[int, list[tuple[int, int]]]


def tagged_union(spark: "SparkSession", place: Path, files: Sequence[Sequence[Sequence[int]]]) -> "DataFrame":
    """A stream of each source's numbers, file by file, beside the number of the source."""
    frames = []
    for source, epochs in enumerate(files):
        numbers = [[{"n": n} for n in epoch] for epoch in epochs]
        opened = parquet_epochs(place / str(source), numbers, SCHEMA, "n BIGINT").open(spark, str(source), placed=False)
        frames.append(opened.rows.select(F.lit(source).alias("source"), "n"))
    stream, *others = frames
    for other in others:
        stream = stream.union(other)
    return stream


def epochs_of(stream: "DataFrame", checkpoint: Path, seen: Any) -> None:
    writer = stream.writeStream.foreachBatch(seen).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


def test_each_source_is_read_alone_also_while_others_are_silent(spark: "SparkSession", tmp_path: Path) -> None:
    files = [[[1, 2], [3]], [[10]], [[20, 21], [], [22]]]
    found: list[Rows] = []
    giving = [(0, 1, 2), (0, 2), (2,)]
    apart = SourceRows(spark)

    def seen(batch: "DataFrame", epoch: int) -> None:
        parts = apart.of(batch, giving[epoch])
        assert parts is not None
        assert sum(part._jdf.queryExecution().toRdd().getNumPartitions() for part in parts.values()) <= len(parts)
        found.append({source: [tuple(row) for row in part.collect()] for source, part in parts.items()})

    epochs_of(tagged_union(spark, tmp_path / "in", files), tmp_path / "checkpoint", seen)
    assert found == [
        {0: [(0, 1), (0, 2)], 1: [(1, 10)], 2: [(2, 20), (2, 21)]},
        {0: [(0, 3)], 2: []},
        {2: [(2, 22)]},
    ]


def test_each_source_is_read_alone_in_an_epoch_that_a_nudge_asked_for(spark: "SparkSession", tmp_path: Path) -> None:
    """With rows of all sources, of one alone, and of none."""
    found: list[Rows] = []
    giving: list[tuple[int, ...]] = [(0, 1), (0, 1), (0,), ()]
    apart, nudges = SourceRows(spark), Nudges(spark)

    def seen(batch: "DataFrame", epoch: int) -> None:
        parts = apart.of(batch, giving[epoch])
        assert parts is not None, epoch
        found.append({source: [tuple(row) for row in part.collect()] for source, part in parts.items()})
        if epoch + 1 < len(giving):
            nudges.nudge()

    stream = nudges.beside(tagged_union(spark, tmp_path / "in", [[[1], [2], [3]], [[10], [11]]]))
    epochs_of(stream, tmp_path / "checkpoint", seen)
    assert found == [{0: [(0, 1)], 1: [(1, 10)]}, {0: [(0, 2)], 1: [(1, 11)]}, {0: [(0, 3)]}, {}]


def test_no_row_is_taken_for_one_of_another_source(spark: "SparkSession", tmp_path: Path) -> None:
    said: list[str] = []
    apart = SourceRows(spark)

    def seen(batch: "DataFrame", epoch: int) -> None:
        assert apart.of(batch, (0,)) is None, "there are the rows of two sources"
        parts = apart.of(batch, (1, 0))
        assert parts is not None
        with pytest.raises(Py4JJavaError) as refused:
            parts[0].collect()
        said.append(str(refused.value))

    epochs_of(tagged_union(spark, tmp_path / "in", [[[1]], [[10]]]), tmp_path / "checkpoint", seen)
    assert "expected rows of source 0 alone, got one of source 1" in said[0]


def test_an_app_reads_its_sources_apart(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is kept for a second reading, and an epoch of one source alone has its rows, too."""
    files = [[[1, 2], [3]], [[10]]]
    kept: list[Any] = []
    monkeypatch.setattr(dataframes.EpochDataFrames, "_keep", lambda self, frame: kept.append(frame) or frame)
    app = App("apart")
    left, right = (
        app.source(name, parquet_epochs(tmp_path / name, [[{"n": n} for n in e] for e in epochs], SCHEMA, "n BIGINT"))
        for name, epochs in zip(("left", "right"), files, strict=True)
    )
    out = sinks.memory()
    left.union("both", right).sink("out", out)
    running = app.start(spark, checkpoint=str(tmp_path / "checkpoint"), until="available")
    reports = running.wait(120)
    running.stop()
    assert not kept
    assert {epoch: sorted(rows["n"].to_pylist()) for epoch, rows in out.epochs.items()} == {0: [1, 2, 10], 1: [3]}
    assert [report.rows_in for report in reports] == [3, 1]


@pytest.mark.parametrize("few_rows", [0, 1_000])
@pytest.mark.parametrize("step", ["join", "count"])
def test_a_keyed_step_has_its_part_in_an_epoch_in_which_its_sources_give_nothing(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, few_rows: int
) -> None:
    """Another source does, and rows go either way through the shuffle."""
    monkeypatch.setattr(compute, "FEW_ROWS", few_rows)
    app, out = App("elsewhere"), sinks.memory()
    left, right, other = (
        app.source(name, parquet_epochs(tmp_path / name, [[{"n": n}] for n in numbers], SCHEMA, "n BIGINT"))
        for name, numbers in (("left", [1]), ("right", [1]), ("other", [5, 6]))
    )
    if step == "join":
        left.key_by("n").join("step", right.key_by("n")).sink("out", out)
    else:
        left.union("both", right).key_by("n").aggregate("step", c=agg.count()).sink("out", out)
    other.sink("others", sinks.noop())
    reports = app.run(spark, checkpoint=str(tmp_path / "checkpoint"), until="available", instances=2)
    assert [report.rows_in for report in reports] == [3, 1]
    assert [len(report.operators[0].instances) for report in reports] == [2, 2]
    assert out.rows() == [{"n": 1} if step == "join" else {"n": 1, "c": 2}]
