"""The rows of each source of a micro-batch that is a union of several."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.java_classes import frame_of, shipped

_UNION, _SAME_PARTITIONS = "org.apache.spark.rdd.UnionRDD", "org.apache.spark.OneToOneDependency"


class SourceRows:
    """Tells the partitions of a union's streams apart, so that the rows of each are read alone."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._constructor = shipped(spark, "SourceRDD")

    def of(self, batch: DataFrame, giving: Sequence[int]) -> dict[int, DataFrame] | None:
        """By its number, the rows of each source; the first column of a row is that number.

        `giving` are the sources that have rows in this micro-batch, in the order of the union. None if Spark has made
        something else of it than one after the other.
        """
        rdd = batch._jdf.queryExecution().logical().rdd()
        sizes = list(_sizes(rdd))
        if len(sizes) == len(giving) + 1 and sizes[-1] == 0:
            sizes.pop()  # A nudge, which is beside the sources, and has no rows.
        if len(sizes) != len(giving):
            return None
        ends = accumulate(sizes, initial=0)
        return {
            source: self._some(batch, rdd, source, *span) for source, span in zip(giving, pairwise(ends), strict=True)
        }

    def none(self, batch: DataFrame) -> DataFrame:
        """No rows, as Spark finds out when it reads them: what it knows to be empty it plans no tasks for."""
        return self._some(batch, batch._jdf.queryExecution().logical().rdd(), 0, 0, 0)

    def _some(self, batch: DataFrame, rdd: Any, source: int, first: int, end: int) -> DataFrame:
        arguments = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 4)
        for place, argument in enumerate((rdd, source, first, end)):
            arguments[place] = argument
        return frame_of(self._constructor.newInstance(arguments), batch)


def _sizes(rdd: Any) -> Iterator[int]:
    """How many partitions each part of a union has; of anything else, its own number."""
    whole = partitions = rdd.getNumPartitions()
    while rdd.getClass().getName() != _UNION:
        dependencies = rdd.dependencies()
        if dependencies.size() != 1 or dependencies.apply(0).getClass().getName() != _SAME_PARTITIONS:
            yield whole
            return
        rdd = dependencies.apply(0).rdd()
        partitions = rdd.getNumPartitions()
    parts = rdd.rdds()
    assert partitions == whole, "each RDD on the way has the partitions of the one before"
    for number in range(parts.size()):
        yield parts.apply(number).getNumPartitions()
