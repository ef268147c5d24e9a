"""Rows of a micro-batch, counted while tasks read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.frames import made_by, maker_of
from springtide.engine.spark.internals.java_classes import shipped


@dataclass(frozen=True)
class Mark:
    """A column that is not null in the rows to be counted: its place in the row, or in a struct of the row."""

    column: int
    struct: int = -1
    """The struct's place in the row; -1 if the column is the row's own."""
    size: int = 0
    """The struct's number of fields."""


class Told:
    """What tasks have told of the rows they read; complete for a job as soon as it has ended."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    def lines(self) -> list[str]:
        """One line a task that read a partition: its number, the rows of each source in it, those with each mark."""
        text: str = self._accumulator.value().toString()  # One call, however many tasks there were.
        return [line for line in text.strip("[]").split(", ") if line]


class RowCounter:
    """Counts the rows of a micro-batch where tasks read them: without a job, and without waiting for an event.

    Spark sends what a task has told along with the task's result. A task that is run again tells the same again.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._scala = spark.sparkContext._jsc.sc()
        self._constructor = shipped(spark, "CountedRDD")

    def count(self, batch: DataFrame, sources: int, marks: Sequence[Mark] = ()) -> tuple[DataFrame, Told]:
        """The same rows, and what tasks tell of them; of several sources, a row's first column is the number."""
        # A micro-batch is an RDD with a schema.
        return self._count(batch, maker_of(batch.sparkSession).rddOf(batch._jdf), sources, marks)

    def classes(self, rows: DataFrame, classes: int) -> tuple[DataFrame, Told]:
        """The same rows, and what tasks tell of them; a row's first column is the number of its class."""
        return self._count(rows, rows._jdf.queryExecution().toRdd(), classes, ())

    def _count(self, batch: DataFrame, rdd: Any, sources: int, marks: Sequence[Mark]) -> tuple[DataFrame, Told]:
        # Also what failed tasks tell: they may have left their partition in the cache, where nobody counts it again.
        told = maker_of(batch.sparkSession).accumulator(self._scala)
        places = " ".join(f"{mark.struct} {mark.size} {mark.column}" for mark in marks)
        return made_by(self._constructor, batch, rdd, told, sources, places), Told(told)
