"""A join of two streams in an interval of event time: rows a second, against Spark's own with either state store."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from springtide.app import App
from springtide.bench.harness.arena import Arena, session
from springtide.bench.harness.contestants import HDFS, ROCKSDB, Round, app_round, use_store, watch
from springtide.bench.harness.findings import Findings
from springtide.bench.harness.rates_beside_spark import OURS, WITH_HDFS, WITH_ROCKSDB, rates_beside_spark
from springtide.connectors import sinks, sources

SECOND_MS = 1000
"""Of event time, from one epoch to the next."""


@dataclass(frozen=True)
class TwoStreams:
    """As many rows an epoch in each stream; left rows wait for as many epochs as it takes to have `held` of them."""

    rows: int
    held: int

    @property
    def epochs(self) -> int:
        """Epochs until all of them are there."""
        return -(-self.held // self.rows)

    @property
    def interval_s(self) -> int:
        """How much later the right row may be."""
        return self.epochs * SECOND_MS // 1000

    def stream(self, spark: SparkSession, side: int) -> DataFrame:
        """Keys at random among as many as there are rows that wait: a row has about one match."""
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        parts = source.option("numPartitions", spark.sparkContext.defaultParallelism)
        rows = parts.option("advanceMillisPerBatch", SECOND_MS).load()
        key = F.pmod(F.xxhash64(F.col("value"), F.lit(side)), F.lit(self.held))
        return rows.select(key.alias("k"), F.col("timestamp").alias("at"), F.col("value").alias("v"))


class Joiner(Protocol):
    """Runs rounds of the join, on a checkpoint of its own."""

    @property
    def name(self) -> str:
        """What the figures call it."""

    def round(self, spark: SparkSession, load: TwoStreams, epochs: int) -> Round:
        """Run the warm epochs and a number more."""


@dataclass(frozen=True)
class Springtide:
    directory: Path
    instances: int
    name: str = OURS

    def round(self, spark: SparkSession, load: TwoStreams, epochs: int) -> Round:
        app = App("bench")
        left, right = (
            app.source(name, sources.stream(partial(load.stream, side=side))).key_by("k")
            for side, name in enumerate(("left", "right"))
        )
        within = ("0 seconds", f"{load.interval_s} seconds")
        left.join("joined", right, time=("at", "at"), within=within).sink("nowhere", sinks.noop())
        return app_round(app, spark, self.directory, self.instances, epochs)


@dataclass(frozen=True)
class Spark:
    """Spark's own stream-stream join with one of its state stores."""

    directory: Path
    provider: str
    partitions: int
    name: str

    def round(self, spark: SparkSession, load: TwoStreams, epochs: int) -> Round:
        use_store(spark, self.provider, self.partitions)
        left, right = (load.stream(spark, side).withWatermark("at", "0 seconds") for side in (0, 1))
        right = right.select(F.col("k").alias("k2"), F.col("at").alias("at2"), F.col("v").alias("v2"))
        near = f"k = k2 AND at2 >= at AND at2 <= at + INTERVAL {load.interval_s} SECONDS"
        writer = left.join(right, F.expr(near)).writeStream.format("noop").outputMode("append")
        query = writer.option("checkpointLocation", str(self.directory / "checkpoint")).start()
        try:
            return Round(watch(query, epochs))
        finally:
            query.stop()


@dataclass(frozen=True)
class Throughput:
    rows: int = 50_000
    """Of each stream in an epoch."""
    held: int = 1_000_000
    """Left rows that wait in the state."""
    rounds: int = 3
    epochs: int = 8
    partitions: int = 2

    def run(self, place: Arena) -> Findings:
        load = TwoStreams(self.rows, self.held)
        joiners: list[Joiner] = [
            Springtide(place.scratch / "springtide", self.partitions),
            Spark(place.scratch / "hdfs", HDFS, self.partitions, WITH_HDFS),
            Spark(place.scratch / "rocksdb", ROCKSDB, self.partitions, WITH_ROCKSDB),
        ]
        times: dict[str, list[float]] = {joiner.name: [] for joiner in joiners}
        for joiner in joiners:
            filled = _round(place, joiner, load, load.epochs)
            if filled.last is not None:
                state_bytes = sum(step.state_bytes for step in filled.last.operators)
        for _ in range(self.rounds):
            for joiner in joiners:
                times[joiner.name] += _round(place, joiner, load, self.epochs).epochs_s
        title = f"Interval join, {self.held:,} rows in the state, {2 * self.rows:,} rows an epoch"
        more = {"rows": self.rows, "held": self.held, "rounds": self.rounds, "state_mb": round(state_bytes / 1e6)}
        return rates_beside_spark("join", title, 2 * self.rows, times, more)


def _round(place: Arena, joiner: Joiner, load: TwoStreams, epochs: int) -> Round:
    """In the joiner's own process."""
    return place.call(joiner.name, _in_its_process, joiner, load, epochs)


def _in_its_process(joiner: Joiner, load: TwoStreams, epochs: int) -> Round:
    return joiner.round(session(), load, epochs)
