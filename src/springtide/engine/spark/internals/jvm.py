"""What is asked of the JVM itself: how it ended, what it has, what it logs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen, TimeoutExpired
from typing import Any, cast

from pyspark.sql import SparkSession

from springtide.logs import room_logger

log = room_logger(__name__)


def jvm_status(spark: SparkSession, within_s: float) -> int | None:
    """How the JVM that PySpark started has ended, as Popen has it, if it has or does in a moment.

    None if it lives on, or is not PySpark's child.
    """
    process: Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return process.wait(within_s)
    except TimeoutExpired:
        return None


def jvm_pid(spark: SparkSession) -> int:
    """The process of the JVM in which Spark's driver runs."""
    return int(cast(Any, spark._jvm).java.lang.ProcessHandle.current().pid())


def live_heap_bytes(spark: SparkSession) -> int:
    """What is left in the heap of the driver's JVM after it has collected all garbage."""
    lang: Any = cast(Any, spark._jvm).java.lang
    lang.System.gc()
    runtime = lang.Runtime.getRuntime()
    return int(runtime.totalMemory()) - int(runtime.freeMemory())


def quiet_accumulators(spark: SparkSession) -> None:
    """Let the server for accumulators log a lost connection, where it would print a traceback when the JVM ends."""
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda request, client: log.info("the connection for accumulators from %s broke", client)


@contextmanager
def silent_log(spark: SparkSession) -> Iterator[None]:
    """Spark's log says nothing meanwhile; for a job whose failure is expected, and told otherwise."""
    # Spark's own setLogLevel would also lift the threshold that it sets for interpreters.
    log4j: Any = cast(Any, spark._jvm).org.apache.logging.log4j
    root = log4j.core.config.Configurator
    before = log4j.LogManager.getRootLogger().getLevel()
    root.setRootLevel(log4j.Level.OFF)
    try:
        yield
    finally:
        root.setRootLevel(before)


def file_system_fault(spark: SparkSession, scheme: str) -> str | None:
    """Why Spark cannot read and write URLs of a scheme, in Hadoop's words; None if it has what that takes."""
    files: Any = cast(Any, spark._jvm).org.apache.hadoop.fs.FileSystem
    try:
        files.getFileSystemClass(scheme, cast(Any, spark.sparkContext._jsc).hadoopConfiguration())
    except Exception as error:
        told = re.search(r"^: (?:[\w.$]+: )+(.*)$", str(error), re.MULTILINE)
        return told[1] if told else str(error)
    return None


def hadoop_version(spark: SparkSession) -> str:
    """Of the Hadoop client in Spark's jars, which what is added beside it has to fit."""
    return str(cast(Any, spark._jvm).org.apache.hadoop.util.VersionInfo.getVersion())
