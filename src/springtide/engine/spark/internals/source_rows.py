"""The rows of each source of a micro-batch that is a union of several."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from pyspark.sql import DataFrame, SparkSession

from springtide.engine.spark.internals.frames import made_by, maker_of
from springtide.engine.spark.internals.java_classes import shipped


class SourceRows:
    """Tells the partitions of a union's streams apart, so that the rows of each are read alone."""

    def __init__(self, spark: SparkSession) -> None:
        self._constructor = shipped(spark, "SourceRDD")

    def of(self, batch: DataFrame, giving: Sequence[int]) -> dict[int, DataFrame] | None:
        """By its number, the rows of each source; the first column of a row is that number.

        `giving` are the sources that have rows in this micro-batch, in the order of the union. None if Spark has made
        something else of it than one after the other.
        """
        maker = maker_of(batch.sparkSession)
        rdd = maker.rddOf(batch._jdf)
        sizes = [int(size) for size in maker.partsOf(rdd).split()]
        if len(sizes) == len(giving) + 1 and sizes[-1] == 0:
            sizes.pop()  # A nudge, which is beside the sources, and has no rows.
        if len(sizes) != len(giving):
            return None
        spans = pairwise(accumulate(sizes, initial=0))
        return {
            source: made_by(self._constructor, batch, rdd, source, *span)
            for source, span in zip(giving, spans, strict=True)
        }

    def none(self, batch: DataFrame) -> DataFrame:
        """No rows, as Spark finds out when it reads them: what it knows to be empty it plans no tasks for."""
        rdd = maker_of(batch.sparkSession).rddOf(batch._jdf)
        return made_by(self._constructor, batch, rdd, 0, 0, 0)
