"""Every use of a non-public Spark or PySpark API, in one room.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

from springtide.engine.spark_internals.executors import Executor, Executors, executor_files
from springtide.engine.spark_internals.jvm import (
    file_system_fault,
    hadoop_version,
    jvm_pid,
    jvm_status,
    live_heap_bytes,
    quiet_accumulators,
    silent_log,
)
from springtide.engine.spark_internals.nudges import Nudges
from springtide.engine.spark_internals.placement import Placement, executor_place
from springtide.engine.spark_internals.queries import admit, repartition_checkpoint, tagged_jobs
from springtide.engine.spark_internals.row_counter import Mark, RowCounter, Told
from springtide.engine.spark_internals.schemas import arrow_schema, spark_schema
from springtide.engine.spark_internals.workers import pickled_by_value, worker_python

__all__ = [
    "Executor",
    "Executors",
    "Mark",
    "Nudges",
    "Placement",
    "RowCounter",
    "Told",
    "admit",
    "arrow_schema",
    "executor_files",
    "executor_place",
    "file_system_fault",
    "hadoop_version",
    "jvm_pid",
    "jvm_status",
    "live_heap_bytes",
    "pickled_by_value",
    "quiet_accumulators",
    "repartition_checkpoint",
    "silent_log",
    "spark_schema",
    "tagged_jobs",
    "worker_python",
]
