"""Who competes: a keyed count by Springtide, and the same by Spark's own stateful query.

Each contestant keeps its own checkpoint. A *round* starts it there, lets it run a number of
epochs, and stops it; rounds of different contestants alternate, so that noise hits all of them.
Epoch times are Spark's own: `triggerExecution` in the query's progress.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from springtide.app import App
from springtide.dataflow import sinks, sources
from springtide.metrics.report import EpochReport
from springtide.state import aggregates as agg

WARM_EPOCHS = 3
"""Dropped at the start of a round: opening the state again, and the first plans."""
ROUND_LIMIT_S = 900.0

PROVIDER = "org.apache.spark.sql.execution.streaming.state."
HDFS = f"{PROVIDER}HDFSBackedStateStoreProvider"
ROCKSDB = f"{PROVIDER}RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Load:
    """What arrives: rows an epoch, and how a row's running number becomes its key."""

    rows: int
    key: Callable[[Column], Column]

    def stream(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        return source.option("numPartitions", spark.sparkContext.defaultParallelism).load()

    def keyed(self, rows: DataFrame) -> DataFrame:
        return rows.select(self.key(F.col("value")).alias("k"))


def scattered(keys: int) -> Callable[[Column], Column]:
    """Keys at random, each as likely as any other."""
    return lambda value: F.pmod(F.xxhash64(value), F.lit(keys))


def in_turn(keys: int) -> Callable[[Column], Column]:
    """Every key once, then all over again."""
    return lambda value: F.pmod(value, F.lit(keys))


class Contestant(Protocol):
    """Runs a round and says how long its epochs took."""

    name: str

    def round(self, spark: SparkSession, load: Load, epochs: int) -> list[float]:
        """Epoch times in seconds, after the warm ones."""


@dataclass
class Springtide:
    """The count as an app with a sink that publishes nowhere."""

    directory: Path
    instances: int | None = None
    name: str = "springtide"
    reports: list[EpochReport] = field(default_factory=list)

    def round(self, spark: SparkSession, load: Load, epochs: int) -> list[float]:
        app = App("bench")
        rows = app.source("rows", sources.stream(load.stream)).transform("keys", load.keyed)
        rows.key_by("k").aggregate("count", n=agg.count()).sink("nowhere", sinks.noop())
        running = app.start(
            spark,
            checkpoint=str(self.directory / "checkpoint"),
            local=str(self.directory / "local"),
            instances=self.instances,
        )
        try:
            times = watch(running.query, epochs)
        finally:
            self.reports = running.stop()
        return times


@dataclass
class SparkCount:
    """Spark's own stateful count with one of its state stores."""

    directory: Path
    provider: str
    partitions: int
    name: str

    def round(self, spark: SparkSession, load: Load, epochs: int) -> list[float]:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", self.provider)
        spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", str(self.partitions))
        counts = load.keyed(load.stream(spark)).groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.format("noop").outputMode("update")
        query = writer.option("checkpointLocation", str(self.directory / "checkpoint")).start()
        try:
            return watch(query, epochs)
        finally:
            query.stop()


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
