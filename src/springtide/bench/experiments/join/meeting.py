"""Two streams of which both wait: an interval to both sides, and event time that goes on with every row."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from springtide.app import App
from springtide.connectors import sinks, sources

PACE = 5_000
"""Rows of each stream in a second of event time, however many an epoch has."""
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Meeting:
    """As many rows an epoch of each stream; in the long run `held` rows wait, half of them on each side."""

    rows: int
    held: int

    @property
    def side(self) -> int:
        """Rows that wait on each side."""
        return self.held // 2

    @property
    def span_us(self) -> int:
        """How far apart matching rows may be."""
        return self.side * SECOND_US // PACE

    def stream(self, spark: SparkSession, side: int) -> DataFrame:
        """The rows of one side as they come."""
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        return self.made(source.option("numPartitions", spark.sparkContext.defaultParallelism).load(), side)

    def made(self, numbers: DataFrame, side: int) -> DataFrame:
        """Rows from their running numbers; keys at random among as many as a side holds: a row has about two matches.

        Spark keeps its own count of time in that source, an epoch a step: it would have the rows of an epoch expire
        all at once.
        """
        number = F.col("value")
        key = F.pmod(F.xxhash64(number, F.lit(side)), F.lit(self.side))
        at = F.timestamp_micros(number * F.lit(SECOND_US // PACE))
        return numbers.select(key.alias("k"), at.alias("at"), number.alias("v"))

    def app(self, sink: sinks.SinkSpec) -> App:
        """The join as an app."""
        app = App("bench")
        left, right = (
            app.source(name, sources.stream(partial(self.stream, side=side))).key_by("k")
            for side, name in enumerate(("left", "right"))
        )
        within = (timedelta(microseconds=-self.span_us), timedelta(microseconds=self.span_us))
        left.join("joined", right, time=("at", "at"), within=within).sink("out", sink)
        return app
