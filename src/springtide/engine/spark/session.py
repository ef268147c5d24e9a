"""The Spark session: the user's own, or one that we make and stop."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from springtide import confidential
from springtide.confidential import Discreet
from springtide.engine.spark.capacity import BOX_MEMORY_MB, SLOTS
from springtide.engine.spark.internals import (
    QUICK_LOCAL_LOGS,
    Executors,
    classes_of_logs,
    close_executor_files,
    guard_callbacks,
    jvm_variable,
    make_room_for_executor_files,
    own_name,
    quiet_accumulators,
    start_jvm,
)
from springtide.engine.spark.java_shim import usable_home
from springtide.engine.spark.own_machine import ADDRESS, ENVIRONMENT, LOOPBACK, closed_settings, on_this_machine
from springtide.errors import SpringtideError
from springtide.java_home import find_java
from springtide.scratch import make_scratch

DAEMON_SETTING, DAEMON = "spark.python.daemon.module", "springtide.engine.worker.daemon"
SPECULATION = "spark.speculation"

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.shuffle.compress": "false",
    "spark.python.worker.reuse": "true",
    # Spark remembers finished work for its web pages. Nobody looks at them, and some of it is large.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "20",
    DAEMON_SETTING: DAEMON,
    # Over TCP every Python task waits some 40 ms for its first rows.
    "spark.python.unix.domain.socket.enabled": "true",
    # What Spark shows of settings and of options of sources, it shows without these.
    "spark.redaction.regex": f"(?i){confidential.NAMES}",
}
"""For sessions that we make; each can be overridden."""

WORKER_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(256 << 20), "MALLOC_TRIM_THRESHOLD_": str(512 << 20)}
"""Workers keep freed memory for the next epoch, instead of asking the system for the same pages again."""

DRIVER_OPTIONS, EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"

CLUSTER_SETTINGS = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
    # A task belongs on its planned worker: Spark's own guess where a shuffle's rows are would compete with it.
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.locality.wait": "3s",
    # A lost worker is noticed by its connection; waiting for its files longer only delays the retry.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.deploy.maxExecutorRetries": "-1",
    # A worker that is about to be taken away says so, and gets no more tasks.
    "spark.decommission.enabled": "true",
    "spark.task.maxFailures": "4",
    # A twin on another worker has no state to work with: it would end at once, and the epoch would start over.
    SPECULATION: "false",
    "spark.executor.memory": "768m",
}
"""For sessions with several workers; each can be overridden."""

BOX_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Executors that share a machine: quick to start, little compiling, one thread to collect garbage."""


FOR_EVER = "36500d"


class SparkDied(SpringtideError):
    """The JVM in which Spark's driver ran has ended; `status` is as Popen has it: a negative one is a signal's."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        how = f"signal {-self.status} ({_signal_name(-self.status)})" if self.status < 0 else f"exit code {self.status}"
        hint = (
            " If the system ended it for lack of memory, let it have less: --conf spark.driver.memory=2g."
            if self.status == -signal.SIGKILL
            else " --log-level ERROR shows what Spark itself says."
        )
        return (
            f"Spark's JVM has ended by {how} while the app ran. What was committed is safe, and the epoch in flight "
            f"is run again: start the app once more.{hint}"
        )


class WrongJvm(SpringtideError):
    """Another session has started the JVM of this process, of which there is one, for another purpose."""

    def __init__(self, name: str, master: str) -> None:
        super().__init__(name, master)
        self.name, self.master = name, master

    def __str__(self) -> str:
        meant = "this machine alone" if self.name == LOOPBACK else "the network"
        return (
            f"expected a Spark that fits the master {self.master}, got one in this process that was started for "
            f"{meant} (it calls itself {self.name}). Run the app in a process of its own, or give it a session: spark=…"
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def box(workers: int) -> str:
    """The master of a cluster in a box: executors as processes of their own on this machine."""
    return f"local-cluster[{workers},{SLOTS},{BOX_MEMORY_MB}]"


def manager_settings(master: str, workers: int) -> dict[str, str]:
    """What a cluster manager has to know to send exactly `workers` executors, and more or fewer later.

    A standalone master sends an app all that its workers have room for, and heeds a number only from apps with
    dynamic allocation: so that is on, and tied down to leave every change of the number to us. The limit of
    `spark.cores.max` would hold for good, and keep the app from growing.
    """
    settings = {"spark.executor.cores": str(SLOTS), "spark.executor.instances": str(workers)}
    if master.startswith("spark://"):
        settings |= {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": str(workers),
            "spark.dynamicAllocation.maxExecutors": str(workers),
            "spark.dynamicAllocation.executorIdleTimeout": FOR_EVER,
        }
    return settings


RETAINED = "spark.sql.streaming.minBatchesToRetain"

EPOCH_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # Rows are kept for one epoch only: compressing them costs more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
"""For the private session in which Spark runs our epochs; the user's own keeps its settings."""


@dataclass(frozen=True, repr=False)
class SessionConfig(Discreet):
    """How to make a session when the user gives none."""

    master: str = field(default_factory=lambda: f"local[{os.cpu_count() or 1}]")
    """Where Spark runs; embedded in this process by default."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark settings beside the defaults."""
    workers: int = 0
    """Executors that hold state; 0 if the driver's own process does."""
    log_level: str = "OFF"
    """Spark's log on the terminal; errors reach the user as exceptions anyway."""


def make_session(app: str, config: SessionConfig) -> SparkSession:
    """Start Spark with a Java that it accepts, and with workers that run this very Python."""
    _quiet_libraries()
    os.environ["JAVA_HOME"] = str(usable_home(find_java()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in WORKER_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    here, boxed = on_this_machine(config.master), config.master.startswith("local-cluster")
    settings = session_settings(config, make_scratch("spark") if here else None)
    confidential.remember_settings(settings)
    builder = SparkSession.builder.master(config.master).appName(app)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _signals_left_alone():
        shown = {key: value for key, value in settings.items() if not confidential.is_secret(key)}
        start_jvm({"spark.master": config.master, **shown}, ENVIRONMENT if here else {})
        _check_jvm(config.master)
        if boxed:
            make_room_for_executor_files()
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(config.log_level)
    quiet_accumulators(spark)
    guard_callbacks(spark)
    if boxed:
        close_executor_files(spark)
        Executors(spark).close_pages()
    return spark


def session_settings(config: SessionConfig, scratch: Path | None) -> dict[str, str]:
    """All settings of a session; one on this machine keeps what is temporary in `scratch`. The user's own win."""
    closed = {} if scratch is None else closed_settings(scratch)
    ours = {**DEFAULTS, **_worker_settings(config), **executor_environment(), **closed}
    return {**ours, **config.settings, **_java_options(config, scratch)}


def _check_jvm(master: str) -> None:
    """Raise WrongJvm if a box would listen on the network, or a cluster could not reach the driver."""
    name = own_name()
    if master.startswith("local-cluster"):
        fits = name == LOOPBACK
    else:  # The user may have told it so.
        fits = on_this_machine(master) or jvm_variable(ADDRESS) in (None, os.environ.get(ADDRESS))
    if not fits:
        raise WrongJvm(name, master)


def _quiet_libraries() -> None:
    """What these log reaches people as an exception as well."""
    # When the JVM ends, every thread that talks to it logs a traceback.
    logging.getLogger("py4j").addHandler(logging.NullHandler())
    # A DataFrame that can't be built is logged as a line of JSON with the JVM's stack in it.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def _signals_left_alone() -> Iterator[None]:
    """PySpark's handler of SIGINT would cancel the jobs of the epoch in flight: the one that was there stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _worker_settings(config: SessionConfig) -> dict[str, str]:
    boxed = config.master.startswith("local-cluster")
    shared = CLUSTER_SETTINGS if config.workers else {}
    asked = manager_settings(config.master, config.workers) if config.workers and not boxed else {}
    return {**shared, **asked}


def executor_environment() -> dict[str, str]:
    """The environment of executors, which run elsewhere, under a daemon that has not inherited ours."""
    variables = dict(WORKER_ENVIRONMENT)
    if path := os.environ.get("PYTHONPATH"):
        variables["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))
    return {f"spark.executorEnv.{name}": value for name, value in variables.items()}


def _java_options(config: SessionConfig, scratch: Path | None) -> dict[str, str]:
    """Options of the driver's JVM, and of executors in a box; what the user gives comes last and wins."""
    # Spark warns before any level can be set: a log configuration prevents it.
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    temporary = [] if scratch is None else [f'"-Djava.io.tmpdir={scratch}"']
    ours = {DRIVER_OPTIONS: [f"-Dlog4j2.configurationFile={log}", f"-Dspringtide.log.level={config.log_level}"]}
    if config.master.startswith("local-cluster"):
        ours[EXECUTOR_OPTIONS] = [BOX_OPTIONS]
    return {
        name: " ".join([*options, *temporary, config.settings.get(name, "")]).strip() for name, options in ours.items()
    }


def prepare_epoch_session(spark: SparkSession) -> None:
    """Settings that our jobs rely on: partitions stay as planned, and batches are large."""
    for key, value in EPOCH_SETTINGS.items():
        spark.conf.set(key, value)


@contextmanager
def log_settings(spark: SparkSession, checkpoint: str, epochs: int) -> Iterator[None]:
    """Let a query that is started here keep this number of epochs in its logs, or more if that is set.

    In a directory of this machine the logs are written without a process for each file's permissions.
    """
    ours = {RETAINED: str(max(int(spark.conf.get(RETAINED) or 0), epochs))}
    if on_local_disk(checkpoint):
        ours |= QUICK_LOCAL_LOGS
    before = {key: spark.conf.get(key, None) for key in ours}
    try:
        for key, value in ours.items():
            spark.conf.set(key, value)
        with classes_of_logs(spark) if on_local_disk(checkpoint) else nullcontext():
            yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def on_local_disk(path: str) -> bool:
    """Whether a path or URL is one of this machine's own file system."""
    return urlsplit(path).scheme in ("", "file")
