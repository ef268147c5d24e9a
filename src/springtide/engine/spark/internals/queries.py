"""Running queries and their jobs."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def await_sources(query: StreamingQuery, limit_s: float) -> None:
    """Return when a query that was just started has opened its sources, or can't; or after the limit."""
    execution: Any = query._jsq.streamingQuery()
    execution.awaitInitialization(round(limit_s * 1e3))


def tagged_jobs(context: SparkContext, tag: str) -> list[int]:
    """The active jobs that have a tag."""
    store = context._jsc.sc().statusStore()
    return [job for job in context.statusTracker().getActiveJobsIds() if store.job(job).jobTags().contains(tag)]


def limit_reads(spark: SparkSession, query: StreamingQuery, rows: Mapping[int, int | None]) -> None:
    """From its next epoch on, a running query takes at most so many rows from sources, by their places.

    None stands for what the source itself allows; of a directory, files are counted and not rows. Spark looks at these
    limits before every epoch, and has no setting for them.
    """
    jvm: Any = spark._jvm
    execution: Any = query._jsq.streamingQuery()
    limits, sources = execution.uniqueSources(), execution.sources()
    for index, most in rows.items():
        if index < sources.size():
            source = sources.apply(index)
            kind = source.getClass().getName()
            if most is None:
                limit = source.getDefaultReadLimit()
            elif kind.endswith(".FileStreamSource"):
                limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxFiles(most)
            elif ".python." in kind:  # Sources written in Python have limits of their own kind.
                kind = jvm.org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit
                limit = kind(json.dumps({"max_rows": most, "_type": "ReadMaxRows"}))
            else:
                limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(most)
            limits = limits.updated(source, limit)
    getattr(execution, "uniqueSources_$eq")(limits)


def repartition_checkpoint(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Spark's own way to change a stopped stateful query's number of partitions."""
    manager: Any = spark._streamingCheckpointManager
    manager.repartition(checkpoint, partitions, False)
