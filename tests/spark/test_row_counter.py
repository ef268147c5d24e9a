"""Counting rows where tasks read them, which relies on Spark without a promise from Spark."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from waiting import wait_until

from springtide.engine.shedding.rows_taken import most_told
from springtide.engine.spark.internals import Mark, RowCounter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_marked_rows_are_counted_once_however_often_they_are_read(spark: "SparkSession") -> None:
    """By two readers in one job, by a second job, and above a shuffle; the count is there when the job ends."""
    rows = spark.range(0, 100, 1, 4).selectExpr(
        "id",
        "IF(id % 10 = 0, 'x', NULL) AS bad",
        "IF(id % 2 = 0, struct(id AS n, IF(id < 7, 'y', NULL) AS bad), NULL) AS s",
    )
    counted, told = RowCounter(spark).count(micro_batch(rows), 1, (Mark(1), Mark(1, struct=2, size=2)))
    assert most_told(told.lines(), 3) == (0, 0, 0)
    twice = counted.union(counted).groupBy((F.col("id") % 3).alias("k")).count()
    assert sorted(row["count"] for row in twice.collect()) == [66, 66, 68]
    assert most_told(told.lines(), 3) == (100, 10, 4)
    assert counted.count() == 100
    assert most_told(told.lines(), 3) == (100, 10, 4)
    assert [row.id for row in counted.collect()] == list(range(100))


def test_rows_that_nobody_reads_are_not_counted(spark: "SparkSession") -> None:
    rows = micro_batch(spark.range(0, 100, 1, 2).selectExpr("id", "'x' AS bad"))
    counted, told = RowCounter(spark).count(rows, 1, (Mark(1),))
    assert counted.limit(3).collect()
    read, marked = most_told(told.lines(), 2)
    assert 3 <= read == marked < 100


def micro_batch(rows: "DataFrame") -> "DataFrame":
    """The same rows as Structured Streaming hands them to an epoch: an RDD with a schema."""
    from pyspark.sql import DataFrame

    session = rows.sparkSession
    rdd = rows._jdf.queryExecution().toRdd()
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rdd, rows._jdf.schema(), False), session)


def test_rows_are_counted_by_class_behind_other_expressions(spark: "SparkSession") -> None:
    """Also if they are kept, and read by several."""
    rows = spark.range(0, 100, 1, 4).filter("id >= 10").selectExpr("int(id % 3) AS class", "id")
    counted, told = RowCounter(spark).classes(rows, 3)
    counted.persist()
    assert counted.drop("class").union(counted.drop("class")).distinct().count() == 90
    assert counted.filter("id < 0").count() == 0
    assert most_told(told.lines(), 3) == (30, 30, 30)
    counted.unpersist()


def test_rows_of_a_micro_batch_are_counted_once_however_often_they_are_read(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Also if the task that read them failed, and left them in the cache for the next one."""

    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        raise LookupError(f"after {rows} rows")

    found: dict[str, Any] = {}

    def epoch(batch: "DataFrame", number: int) -> None:
        rows, told = RowCounter(spark).count(batch, 1)
        found["before"] = most_told(told.lines(), 1)
        rows.limit(1).collect()
        few = rows.filter("value % 100 = 0")
        found["few"] = [few.count(), len(few.collect())]
        found["twice"] = most_told(told.lines(), 1)
        kept, told_of_kept = RowCounter(spark).count(batch, 1)
        kept.persist()
        with pytest.raises(PySparkException):
            kept.mapInArrow(fails, "value BIGINT").collect()
        found["kept"] = [kept.filter("value < 0").count(), most_told(told_of_kept.lines(), 1)]
        kept.unpersist()

    rate = spark.readStream.format("rate-micro-batch").options(rowsPerBatch="1000", numPartitions="1").load()
    stream = rate.writeStream.foreachBatch(epoch).option("checkpointLocation", str(tmp_path))
    query = stream.trigger(processingTime="1 hour").start()
    try:
        wait_until("the epoch", lambda: "kept" in found or not query.isActive, within_s=120)
    finally:
        query.stop()
    assert found == {"before": (0,), "few": [10, 10], "twice": (1000,), "kept": [0, (1000,)]}
