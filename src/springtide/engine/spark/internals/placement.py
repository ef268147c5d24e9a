"""Partitions on chosen executors."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.frames import made_by
from springtide.engine.spark.internals.java_classes import shipped


class Placement:
    """Puts each partition of a DataFrame on a chosen executor, and tells its task where it runs.

    Spark has a hook for it in the RDD and none in Python: a small Java class overrides it.
    """

    def __init__(self, spark: SparkSession, property_name: str) -> None:
        self._property = property_name
        self._constructor = shipped(spark, "PlacedRDD")

    def place(self, frame: DataFrame, places: Sequence[str]) -> DataFrame:
        """The same rows; partition i runs on `places[i]`, all over again if there are fewer; see `executor_place`."""
        rdd = frame._jdf.queryExecution().toRdd()
        return made_by(self._constructor, frame, rdd, " ".join(places), self._property)


def executor_place(host: str, executor: str) -> str:
    """How Spark's scheduler names an executor as a preferred location."""
    return f"executor_{host}_{executor}"
