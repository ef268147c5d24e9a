"""Asks the Python of a session's workers, before the first epoch, whether it can run an app."""

import os
import sys
import tempfile
import threading

from pyspark.sql import SparkSession

from springtide.engine.executors.worker_python import UnfitPython, WorkerPython, probe
from springtide.engine.spark.internals import pickled_by_value, silent_log, worker_python
from springtide.engine.spark.own_machine import on_this_machine
from springtide.engine.spark.session import DAEMON, DAEMON_SETTING
from springtide.engine.wire.job_errors import explain
from springtide.engine.worker import python_report
from springtide.logs import room_logger

TAG = "springtide-worker-check"
ANSWER_S = 90.0
"""How long executors elsewhere may take to come and answer."""
log = room_logger(__name__)


def check_here(spark: SparkSession) -> None:
    """With executors on this machine: raise UnfitPython if an app cannot run on them. Starts no job.

    A session of our own on this very Python needs no look.
    """
    master = spark.sparkContext.master or ""
    python, environment = worker_python(spark)
    ours = spark.sparkContext.getConf().get(DAEMON_SETTING) == DAEMON
    if not on_this_machine(master) or (ours and python == sys.executable):
        return
    # A Python finds modules in the directory that it starts in; executors of their own start in another than we.
    directory = os.getcwd() if not master.startswith("local-cluster") else tempfile.gettempdir()
    found = probe(python, environment, directory)
    found.check()
    log.info("workers run %s, Python %s", found.executable, found.version)


def check_elsewhere(spark: SparkSession, tasks: int) -> None:
    """With executors on other machines: the same, by a job of `tasks` tasks; UnfitPython names the host."""
    context = spark.sparkContext
    if on_this_machine(context.master or ""):
        return
    python, _ = worker_python(spark)
    for found in ask_by_job(spark, tasks, python):
        found.check(elsewhere=True)


def ask_by_job(spark: SparkSession, tasks: int, python: str) -> list[WorkerPython]:
    """What Pythons say that run a job's tasks, each host's once; UnfitPython if the job fails.

    The job cannot fail for want of Springtide: its function takes nothing that is not in any Python.
    """
    context = spark.sparkContext
    # Executors that do not come would keep the job waiting for ever.
    late = threading.Timer(ANSWER_S, context.cancelJobsWithTag, [TAG])
    late.daemon = True
    context.addJobTag(TAG)
    late.start()
    try:
        with pickled_by_value(python_report), silent_log(spark):
            rows = context.parallelize(range(tasks), tasks).map(python_report.report).collect()
    except Exception as error:
        reason = explain(error, TAG).reason.rstrip(".")
        raise UnfitPython(python, f"could not run a task: {reason}", "the cluster") from error
    finally:
        late.cancel()
        context.removeJobTag(TAG)
    return list({one.host: one for one in map(WorkerPython.of, rows)}.values())
