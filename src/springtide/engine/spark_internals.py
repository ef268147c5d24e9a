"""Every use of a non-public Spark or PySpark API, in one place.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

import json
import os
import re
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from types import ModuleType
from typing import Any, cast

import pyarrow as pa
from pyspark import SparkContext
from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from springtide.logs import room_logger
from springtide.scratch import make_scratch

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


def quiet_accumulators(spark: SparkSession) -> None:
    """Let the server for accumulators log a lost connection, where it would print a traceback when the JVM ends."""
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda request, client: log.info("the connection for accumulators from %s broke", client)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that Spark hands to Python, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows that Python hands to Spark; times without a zone stay so."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def worker_python(spark: SparkSession) -> tuple[str, dict[str, str]]:
    """The Python that workers run, and the environment that Spark gives it on this machine."""
    context, jvm = spark.sparkContext, cast(Any, spark._jvm)
    paths = [jvm.PythonUtils.sparkPythonPath(), context.environment.get("PYTHONPATH"), jvm.System.getenv("PYTHONPATH")]
    settings = {**context.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return context.pythonExec, {**os.environ, **settings}


@contextmanager
def pickled_by_value(module: ModuleType) -> Iterator[None]:
    """Functions of a module go to workers with their code, so that workers need not have the module."""
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


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


def _compiled(spark: SparkSession, source: str) -> Any:
    """A Java file beside this one, compiled in the driver by the compiler in Spark's own jars."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(source).read_text())
    return compiler


_shipped_classes: dict[tuple[str, str], Any] = {}
"""By Spark application and class: its constructor, as soon as executors can have it."""
_shipping = threading.Lock()


def _shipped(spark: SparkSession, name: str) -> Any:
    """The constructor of a Java class beside this file, which tasks can use, too; compiled once a Spark application."""
    with _shipping:
        key = (spark.sparkContext.applicationId, name)
        if key not in _shipped_classes:
            compiler = _compiled(spark, f"{name}.java")
            # Executors that come later fetch the jar from the driver, so it has to stay.
            jar = make_scratch("java") / f"{name}-{uuid.uuid4().hex}.jar"
            classes = compiler.getBytecodes()
            with zipfile.ZipFile(jar, "w") as archive:
                for found in classes:
                    archive.writestr(f"{found.replace('.', '/')}.class", bytes(classes[found]))
            spark.sparkContext._jsc.addJar(str(jar))
            loaded = compiler.getClassLoader().loadClass(f"springtide.{name}")
            _shipped_classes[key] = loaded.getConstructors()[0]
        return _shipped_classes[key]


def _frame_of(rdd: Any, like: DataFrame) -> DataFrame:
    """A DataFrame of an RDD of Spark's own rows, with the columns of another one."""
    session = like.sparkSession
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rdd, like._jdf.schema(), False), session)


class Placement:
    """Puts each partition of a DataFrame on a chosen executor, and tells its task where it runs.

    Spark has a hook for it in the RDD and none in Python: a small Java class overrides it.
    """

    def __init__(self, spark: SparkSession, property_name: str) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._property = property_name
        self._constructor = _shipped(spark, "PlacedRDD")

    def place(self, frame: DataFrame, places: Sequence[str]) -> DataFrame:
        """The same rows; partition i runs on `places[i]`, all over again if there are fewer; see `executor_place`."""
        jvm = self._gateway.jvm
        names = self._gateway.new_array(jvm.java.lang.String, len(places))
        for number, place in enumerate(places):
            names[number] = place
        arguments = self._gateway.new_array(jvm.java.lang.Object, 3)
        arguments[0] = frame._jdf.queryExecution().toRdd()
        arguments[1] = names
        arguments[2] = self._property
        return _frame_of(self._constructor.newInstance(arguments), frame)


@dataclass(frozen=True)
class Mark:
    """A column that is not null in the rows to be counted: its place in the row, or in a struct of the row."""

    column: int
    struct: int = -1
    """The struct's place in the row; -1 if the column is the row's own."""
    size: int = 0
    """The struct's number of fields."""


class Told:
    """What tasks have told of the rows they read; complete for a job as soon as it has ended."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    def lines(self) -> list[str]:
        """One line a task that read a partition: its number, the rows of each source in it, those with each mark."""
        text: str = self._accumulator.value().toString()  # One call, however many tasks there were.
        return [line for line in text.strip("[]").split(", ") if line]


class RowCounter:
    """Counts the rows of a micro-batch where tasks read them: without a job, and without waiting for an event.

    Spark sends what a task has told along with the task's result. A task that is run again tells the same again.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._scala = spark.sparkContext._jsc.sc()
        self._constructor = _shipped(spark, "CountedRDD")

    def count(self, batch: DataFrame, sources: int, marks: Sequence[Mark] = ()) -> tuple[DataFrame, Told]:
        """The same rows, and what tasks tell of them; of several sources, a row's first column is the number."""
        jvm = self._gateway.jvm
        told = jvm.org.apache.spark.util.CollectionAccumulator()
        # Also what failed tasks tell: they may have left their partition in the cache, where nobody counts it again.
        told.register(self._scala, jvm.scala.Option.empty(), True)
        arguments = self._gateway.new_array(jvm.java.lang.Object, 6)
        arguments[0] = batch._jdf.queryExecution().logical().rdd()  # A micro-batch is an RDD with a schema.
        arguments[1] = told
        arguments[2] = sources
        for place, field in enumerate(("struct", "size", "column"), start=3):
            numbers = self._gateway.new_array(jvm.int, len(marks))
            for i, mark in enumerate(marks):
                numbers[i] = getattr(mark, field)
            arguments[place] = numbers
        return _frame_of(self._constructor.newInstance(arguments), batch), Told(told)


class Nudges:
    """A source without rows, whose offset moves when it is told to: Spark then runs an epoch, though no row came."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        jvm: Any = spark._jvm
        self._thread = jvm.java.lang.Thread
        self._loader = _compiled(spark, "Nudge.java").getClassLoader()
        self._last = self._loader.loadClass("springtide.Nudge").getField("LAST").get(None)

    def beside(self, stream: DataFrame) -> DataFrame:
        """The same stream with this source as its last."""
        thread = self._thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self._loader)  # Spark looks there for the class of a source.
        try:
            reader = self._spark.readStream.format("springtide.Nudge").option("rows", stream.schema.json())
            return stream.union(reader.load())
        finally:
            thread.setContextClassLoader(before)

    def nudge(self) -> None:
        """Let there be an epoch soon, with whatever the other sources have."""
        self._last.set(str(time.time_ns()))


def executor_place(host: str, executor: str) -> str:
    """How Spark's scheduler names an executor as a preferred location."""
    return f"executor_{host}_{executor}"


@dataclass(frozen=True)
class Executor:
    """A registered executor."""

    id: str
    host: str
    slots: int


class Executors:
    """The executors of a Spark application: who takes tasks, ask for more, let some go."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._scala = self._context._jsc.sc()
        self._jvm: Any = spark._jvm
        loader = _compiled(spark, "ActiveExecutors.java").getClassLoader()
        self._of = loader.loadClass("springtide.ActiveExecutors").getDeclaredMethods()[0]
        gateway: Any = self._context._gateway
        self._arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
        self._arguments[0] = self._scala.schedulerBackend()
        machines = _compiled(spark, "Machines.java").getClassLoader().loadClass("springtide.Machines")
        self._added = machines.getConstructors()[0].newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))
        """The machines that we have started."""

    _machines = 0

    def ids(self) -> frozenset[str]:
        """Who takes tasks now: registered, and neither dismissed nor being decommissioned."""
        return frozenset(self._of.invoke(None, self._arguments))

    def all(self) -> dict[str, Executor]:
        """Everybody who is registered, with host and slots."""
        live = self.ids()
        found = {}
        for summary in self._java(self._scala.statusStore().executorList(True)):
            if summary.id() in live:
                host = summary.hostPort().rpartition(":")[0]
                found[summary.id()] = Executor(summary.id(), host, summary.totalCores())
        return found

    def ask(self, total: int) -> bool:
        """Ask for so many executors in all; False if the cluster manager would not hear of it."""
        nothing = self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        return bool(self._scala.requestTotalExecutors(total, 0, nothing))

    def dismiss(self, ids: Sequence[str]) -> None:
        """Let executors go; whether others come in their place depends on what was asked for."""
        # The context's own method changes the number that was asked for, and refuses if dynamic allocation is on.
        self._scala.schedulerBackend().killExecutors(self._jvm.PythonUtils.toSeq(list(ids)), False, False, True)

    def add_machine(self, slots: int, memory_mb: int) -> None:
        """Start one more machine of a `local-cluster` master, in this process like its others."""
        backend = self._scala.schedulerBackend()
        field = backend.getClass().getDeclaredField("masters")
        field.setAccessible(True)
        masters = field.get(backend)
        worker = getattr(getattr(self._jvm.org.apache.spark.deploy.worker, "Worker$"), "MODULE$")
        host = self._jvm.org.apache.spark.util.Utils.localHostName()
        nothing = self._jvm.scala.Option.empty()
        Executors._machines += 1
        number = self._jvm.scala.Option.apply(1000 + Executors._machines)
        conf = self._scala.conf().clone()
        machine = worker.startRpcEnvAndEndpoint(host, 0, 0, slots, memory_mb, masters, None, number, conf, nothing)
        self._added.add(machine)

    def stop_machines(self, most: int, keep: Set[str]) -> int:
        """Begin to stop at most so many machines that `add_machine` started, the last first; tells how many.

        Their executors end with them, so those that run any of `keep` stay.
        """
        message = self._message("RequestWorkerState", "WorkerStateResponse")
        return int(self._added.stop(most, ",".join(keep), *message))

    def end(self) -> None:
        """Stop all machines that `add_machine` started, and see them end."""
        self._added.end()

    def size(self) -> tuple[int, int]:
        """The cores and MiB that an executor asks for."""
        return self._scala.conf().getInt("spark.executor.cores", 1), self._scala.executorMemory()

    def machines(self) -> list[tuple[int, int]]:
        """The cores and MiB of each machine of a standalone cluster; none if there is another cluster manager."""
        url = (self._context.master or "").partition(",")[0]
        if not url.startswith("spark://"):
            return []
        address = self._jvm.org.apache.spark.rpc.RpcAddress.fromSparkURL(url)
        master = self._scala.schedulerBackend().rpcEnv().setupEndpointRef(address, "Master")
        state = master.askSync(*self._message("RequestMasterState", "MasterStateResponse"))
        return [(worker.cores(), worker.memory()) for worker in state.workers()]

    def _message(self, question: str, answer: str) -> tuple[Any, Any]:
        """A message that daemons of Spark send one another, and the type of its answer."""
        deploy = self._jvm.org.apache.spark.deploy
        message = getattr(getattr(deploy, f"DeployMessages${question}$"), "MODULE$")
        kind = self._jvm.java.lang.Class.forName(f"org.apache.spark.deploy.DeployMessages${answer}")
        return message, self._jvm.scala.reflect.ClassTag.apply(kind)

    def _java(self, seq: Any) -> list[Any]:
        return list(self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(seq))


def tagged_jobs(context: SparkContext, tag: str) -> list[int]:
    """The active jobs that have a tag."""
    store = context._jsc.sc().statusStore()
    return [job for job in context.statusTracker().getActiveJobsIds() if store.job(job).jobTags().contains(tag)]


def admit(spark: SparkSession, query: StreamingQuery, rows: Sequence[int | None]) -> None:
    """From its next epoch on, a running query takes at most so many rows from each of its sources, in their order.

    None leaves a source as it is. Spark looks at these limits before every epoch, and has no setting for them.
    """
    jvm: Any = spark._jvm
    execution: Any = query._jsq.streamingQuery()
    limits, sources = execution.uniqueSources(), execution.sources()
    for index, most in enumerate(rows):
        if most is not None and index < sources.size():
            source = sources.apply(index)
            if ".python." in source.getClass().getName():  # Sources written in Python have limits of their own kind.
                kind = jvm.org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingSourceReadLimit
                limit = kind(json.dumps({"max_rows": most, "_type": "ReadMaxRows"}))
            else:
                limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxRows(most)
            limits = limits.updated(source, limit)
    getattr(execution, "uniqueSources_$eq")(limits)


def executor_files(spark: SparkSession) -> Path:
    """Where a `local-cluster` master keeps the logs and jars of an application's executors."""
    return Path(_find_spark_home(), "work", spark.sparkContext.applicationId)


def repartition_checkpoint(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Spark's own way to change a stopped stateful query's number of partitions."""
    manager: Any = spark._streamingCheckpointManager
    manager.repartition(checkpoint, partitions, False)
