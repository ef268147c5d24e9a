"""Epochs without rows."""

import time

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.java_classes import class_loader, compiled


class Nudges:
    """A source without rows, whose offset moves when it is told to: Spark then runs an epoch, though no row came."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._loader = compiled(spark, "Nudge.java").getClassLoader()
        self._last = self._loader.loadClass("springtide.Nudge").getField("LAST").get(None)

    def beside(self, stream: DataFrame) -> DataFrame:
        """The same stream with this source as its last."""
        with class_loader(self._spark, self._loader):  # Spark looks there for the class of a source.
            reader = self._spark.readStream.format("springtide.Nudge").option("rows", stream.schema.json())
            return stream.union(reader.load())

    def nudge(self) -> None:
        """Let there be an epoch soon, with whatever the other sources have.

        A query that ends with its input has it only if the nudge comes before the end of the epoch in flight.
        """
        self._last.set(str(time.time_ns()))
