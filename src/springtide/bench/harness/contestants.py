"""Who competes: a keyed count by Springtide, and the same by Spark's own stateful query.

Each contestant keeps its own checkpoint. A *round* starts it there, lets it run a number of
epochs, and stops it. Epoch times are Spark's own: `triggerExecution` in the query's progress.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from springtide.app import App
from springtide.connectors import sinks, sources
from springtide.metrics.report import EpochReport
from springtide.state import aggregates as agg

WARM_EPOCHS = 3
"""Dropped at the start of a round: opening the state again, and the first plans."""
ROUND_LIMIT_S = 900.0
ALL_REPORTS = 1_000_000
"""Reports that an app in an experiment keeps: whoever measures looks back on all of them."""

PROVIDER = "org.apache.spark.sql.execution.streaming.state."
HDFS = f"{PROVIDER}HDFSBackedStateStoreProvider"
ROCKSDB = f"{PROVIDER}RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Load:
    """What arrives: rows an epoch, and how a row's running number becomes its key."""

    rows: int
    keys: int
    in_turn: bool = False
    """Every key once, then all over again; else at random, each as likely as any other."""

    def stream(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        return source.option("numPartitions", spark.sparkContext.defaultParallelism).load()

    def keyed(self, rows: DataFrame) -> DataFrame:
        number = F.col("value")
        key = F.pmod(number if self.in_turn else F.xxhash64(number), F.lit(self.keys))
        return rows.select(key.alias("k"))


@dataclass(frozen=True)
class Round:
    """What a round showed."""

    epochs_s: list[float]
    """Epoch times, without the warm ones."""
    last: EpochReport | None = None
    """The last epoch's report, if it was ours."""


class Contestant(Protocol):
    """Runs rounds."""

    @property
    def name(self) -> str:
        """What the figures call it."""

    def round(self, spark: SparkSession, load: Load, epochs: int) -> Round:
        """Run the warm epochs and a number more."""


@dataclass(frozen=True)
class Springtide:
    """The count as an app with a sink that publishes nowhere."""

    directory: Path
    instances: int | None = None
    name: str = "springtide"

    def round(self, spark: SparkSession, load: Load, epochs: int) -> Round:
        app = App("bench")
        rows = app.source("rows", sources.stream(load.stream)).transform("keys", load.keyed)
        rows.key_by("k").aggregate("count", n=agg.count()).sink("nowhere", sinks.noop())
        return app_round(app, spark, self.directory, self.instances, epochs)


@dataclass(frozen=True)
class SparkCount:
    """Spark's own stateful count with one of its state stores."""

    directory: Path
    provider: str
    partitions: int
    name: str

    def start(self, spark: SparkSession, load: Load) -> StreamingQuery:
        """Start the query on its checkpoint."""
        use_store(spark, self.provider, self.partitions)
        counts = load.keyed(load.stream(spark)).groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.format("noop").outputMode("update")
        return writer.option("checkpointLocation", str(self.directory / "checkpoint")).start()

    def round(self, spark: SparkSession, load: Load, epochs: int) -> Round:
        query = self.start(spark, load)
        try:
            return Round(watch(query, epochs))
        finally:
            query.stop()


def app_round(app: App, spark: SparkSession, directory: Path, instances: int | None, epochs: int) -> Round:
    """A round of an app with its checkpoint in a directory."""
    running = app.start(
        spark, checkpoint=str(directory / "checkpoint"), local=str(directory / "local"), instances=instances
    )
    try:
        times = watch(running.query, epochs)
    finally:
        reports = running.stop()
    return Round(times, reports[-1])


def use_store(spark: SparkSession, provider: str, partitions: int) -> None:
    """Let stateful queries of Spark's own keep their state so, and in this number of partitions."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def watch(query: StreamingQuery, epochs: int) -> list[float]:
    """Wait for a number of epochs beyond the warm ones; the times of the last ones."""
    deadline = time.monotonic() + ROUND_LIMIT_S
    done: dict[int, float] = {}
    while len(done) < WARM_EPOCHS + epochs:
        if not query.isActive:
            raise RuntimeError(f"the query ended: {query.exception()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(done)} epochs in {ROUND_LIMIT_S} s, expected {WARM_EPOCHS + epochs}")
        time.sleep(0.05)
        done = {p["batchId"]: p["durationMs"]["triggerExecution"] / 1e3 for p in _progress(query)}
    return [done[batch] for batch in sorted(done)][WARM_EPOCHS : WARM_EPOCHS + epochs]


def _progress(query: StreamingQuery) -> list[Any]:
    return [p for p in query.recentProgress if "addBatch" in p["durationMs"]]
