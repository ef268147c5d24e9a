"""Partitions on chosen executors."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.java_classes import frame_of, shipped


class Placement:
    """Puts each partition of a DataFrame on a chosen executor, and tells its task where it runs.

    Spark has a hook for it in the RDD and none in Python: a small Java class overrides it.
    """

    def __init__(self, spark: SparkSession, property_name: str) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._property = property_name
        self._constructor = shipped(spark, "PlacedRDD")

    def place(self, frame: DataFrame, places: Sequence[str]) -> DataFrame:
        """The same rows; partition i runs on `places[i]`, all over again if there are fewer; see `executor_place`."""
        jvm = self._gateway.jvm
        names = self._gateway.new_array(jvm.java.lang.String, len(places))
        for number, place in enumerate(places):
            names[number] = place
        arguments = self._gateway.new_array(jvm.java.lang.Object, 3)
        arguments[0] = frame._jdf.queryExecution().toRdd()
        arguments[1] = names
        arguments[2] = self._property
        return frame_of(self._constructor.newInstance(arguments), frame)


def executor_place(host: str, executor: str) -> str:
    """How Spark's scheduler names an executor as a preferred location."""
    return f"executor_{host}_{executor}"
