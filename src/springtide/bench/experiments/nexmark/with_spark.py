"""Spark's turn: the query in the SQL of its own Structured Streaming, with its default state store."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from springtide.bench.experiments.nexmark.turn import ANSWER, FILES_AN_EPOCH, LIMIT_S, MEMORY, Turn, as_told, course
from springtide.bench.harness.arena import Arena, session
from springtide.bench.harness.contestants import HDFS, use_store
from springtide.workloads.nexmark.files import SIDE_INPUT
from springtide.workloads.nexmark.queries.catalogue import Output, Query

PARTITIONS = 2
"""Of a shuffle, and so of the state: one for each core. More make small epochs slower."""
LATE = "4 seconds"


@dataclass(frozen=True)
class Spark:
    place: Arena
    name: str = "spark"

    def lacks(self, query: Query) -> str | None:
        return query.spark_lacks

    def turn(self, query: Query, directory: Path, output: Path | None) -> Turn:
        return self.place.call(self.name, _turn, query, directory, output, self.place.scratch)


def _turn(query: Query, directory: Path, output: Path | None, scratch: Path) -> Turn:
    """In its own process; every turn has a new checkpoint."""
    spark, epochs = session(MEMORY), list[pa.Table]()
    use_store(spark, HDFS, PARTITIONS)
    mode = "append" if query.output is Output.APPEND else "update"
    writer = answer(spark, query, directory).writeStream.outputMode(mode).trigger(availableNow=True)
    writer = writer.format("noop") if output is None else writer.foreachBatch(lambda df, _: epochs.append(df.toArrow()))
    own = Path(tempfile.mkdtemp(prefix="spark-", dir=scratch))
    running = writer.option("checkpointLocation", str(own)).start()
    try:
        if not running.awaitTermination(int(LIMIT_S)):
            raise TimeoutError(f"{query.name} did not end in {LIMIT_S:.0f} s")
        if output is not None:
            output.mkdir(parents=True)
            pq.write_table(pa.concat_tables(epochs), output / ANSWER)
        told = as_told(running.recentProgress)
        return course(told, sum(state["memoryUsedBytes"] for state in told[-1]["stateOperators"]))
    finally:
        running.stop()
        shutil.rmtree(own)


def answer(spark: SparkSession, query: Query, directory: Path) -> DataFrame:
    """The query over streams of the files in a directory; only those that keep state have a watermark to compute."""
    for table in query.reads:
        rows = spark.readStream.schema(spark.read.parquet(str(directory / table)).schema)
        stream = rows.option("maxFilesPerTrigger", FILES_AN_EPOCH).parquet(str(directory / table))
        timed = stream.withWatermark("date_time", LATE) if query.stateful else stream
        timed.createOrReplaceTempView(table)
    spark.read.parquet(str(directory / SIDE_INPUT)).createOrReplaceTempView("side_input")
    return spark.sql(query.sql("spark"))
