"""Every use of a non-public Spark or PySpark API, in one room.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

from springtide.engine.spark.internals.batches import in_batches
from springtide.engine.spark.internals.executors import (
    Executor,
    Executors,
    close_executor_files,
    executor_files,
    make_room_for_executor_files,
)
from springtide.engine.spark.internals.frames import by_number, map_in_arrow, select
from springtide.engine.spark.internals.jvm import (
    file_system_fault,
    hadoop_version,
    jvm_pid,
    jvm_status,
    live_heap_bytes,
    quiet_accumulators,
    silent_log,
)
from springtide.engine.spark.internals.launch import guard_callbacks, jvm_variable, own_name, start_jvm
from springtide.engine.spark.internals.nudges import Nudges
from springtide.engine.spark.internals.placement import Placement, executor_place
from springtide.engine.spark.internals.queries import (
    await_sources,
    limit_reads,
    repartition_checkpoint,
    tagged_jobs,
)
from springtide.engine.spark.internals.quick_logs import QUICK_LOCAL_LOGS, classes_of_logs
from springtide.engine.spark.internals.row_counter import Mark, RowCounter, Told
from springtide.engine.spark.internals.schemas import arrow_schema, spark_schema
from springtide.engine.spark.internals.source_rows import SourceRows
from springtide.engine.spark.internals.workers import pickled_by_value, worker_python

__all__ = [
    "QUICK_LOCAL_LOGS",
    "Executor",
    "Executors",
    "Mark",
    "Nudges",
    "Placement",
    "RowCounter",
    "SourceRows",
    "Told",
    "arrow_schema",
    "await_sources",
    "by_number",
    "classes_of_logs",
    "close_executor_files",
    "executor_files",
    "executor_place",
    "file_system_fault",
    "guard_callbacks",
    "hadoop_version",
    "in_batches",
    "jvm_pid",
    "jvm_status",
    "jvm_variable",
    "limit_reads",
    "live_heap_bytes",
    "make_room_for_executor_files",
    "map_in_arrow",
    "own_name",
    "pickled_by_value",
    "quiet_accumulators",
    "repartition_checkpoint",
    "select",
    "silent_log",
    "spark_schema",
    "start_jvm",
    "tagged_jobs",
    "worker_python",
]
