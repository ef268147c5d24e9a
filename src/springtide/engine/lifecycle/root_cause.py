"""The cause behind the errors of an app that has failed: another driver has its checkpoint, or Spark's JVM is gone."""

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from springtide.blocks.claim import Claim
from springtide.blocks.errors import TakenOver
from springtide.dataflow.errors import StepFailed
from springtide.engine.spark.internals import jvm_status
from springtide.engine.spark.session import SparkDied
from springtide.engine.wire.job_errors import stream_failure
from springtide.errors import SpringtideError
from springtide.logs import room_logger

log = room_logger(__name__)

JVM_ENDS_S = 2.0
"""How long a JVM that ends may take to be gone, after calls into it have begun to fail."""
FULL = "No space left on device"
ROOM_FOR_SPARK = (
    "Spark writes its log of offsets to the checkpoint, and temporary files to spark.local.dir. Free space there, and "
    "start the app again: it goes on where it was"
)
SHUT_DOWN = "SparkContext was shut down"
"""What Spark says of jobs that it gives up when it ends."""


def by_claim(failure: BaseException, held: Claim) -> BaseException:
    """TakenOver if another driver holds the checkpoint, which explains whatever else went wrong; else the failure."""
    if isinstance(failure, TakenOver):
        return failure
    try:
        held.look()
    except TakenOver as error:
        error.__cause__ = failure
        return error
    except OSError as error:
        log.info("whether the checkpoint is still held could not be told: %s", error)
    return failure


def by_spark(failure: BaseException, spark: SparkSession) -> BaseException:
    """SparkDied if the JVM has ended, which explains whatever else went wrong; else the failure, in readable words."""
    clear = isinstance(failure, SpringtideError) and SHUT_DOWN not in str(failure)
    status = jvm_status(spark, 0.0 if clear else JVM_ENDS_S)
    told: BaseException = failure
    if status is not None and isinstance(failure, Exception):
        told = SparkDied(status)
    elif isinstance(failure, PySparkException):
        reason = stream_failure(str(failure))
        told = StepFailed("app", "reading its sources", reason, ROOM_FOR_SPARK if FULL in reason else "")
    if told is not failure:
        told.__cause__ = failure
    return told
