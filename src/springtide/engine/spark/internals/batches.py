"""Rows on their way to a Python function, in batches that are not weighed after each row."""

from pyspark.sql import DataFrame

from springtide.engine.spark.internals.frames import made_by
from springtide.engine.spark.internals.java_classes import shipped

BATCH_BYTES = 64 << 20


def in_batches(rows: DataFrame, most: int = BATCH_BYTES) -> DataFrame:
    """The same rows, to be given to `map_in_arrow` as they are: a batch ends with the row by which it has `most` bytes.

    The function has to read all of its rows.
    """
    rdd = rows._jdf.queryExecution().toRdd()
    return made_by(shipped(rows.sparkSession, "BatchedRDD"), rows, rdd, most)
