"""Every use of a non-public Spark or PySpark API, in one place.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

import atexit
import json
import shutil
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that Spark hands to Python, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows that Python hands to Spark; times without a zone stay so."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


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
            jar = Path(tempfile.mkdtemp(prefix="springtide-java-"), f"{name}-{uuid.uuid4().hex}.jar")
            atexit.register(shutil.rmtree, jar.parent, ignore_errors=True)
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


class Counted:
    """A DataFrame that counts its marked rows while jobs read it.

    A task tells its count with its success, and the driver knows of it before the job ends: there is nothing to wait
    for. Counts go by partition, and a partition that is read again gives the same one, so that repeated tasks, several
    jobs and several readers count a row once. Rows that no job reads are not counted.
    """

    def __init__(self, frame: DataFrame, marks: Sequence[Mark]) -> None:
        context: Any = frame.sparkSession.sparkContext
        gateway = context._gateway
        self._told = context._jsc.sc().collectionAccumulator()
        arguments = gateway.new_array(gateway.jvm.java.lang.Object, 5)
        arguments[0] = frame._jdf.queryExecution().toRdd()
        for place, field in enumerate(("struct", "size", "column"), start=1):
            numbers = gateway.new_array(gateway.jvm.int, len(marks))
            for i, mark in enumerate(marks):
                numbers[i] = getattr(mark, field)
            arguments[place] = numbers
        arguments[4] = self._told
        self.frame = _frame_of(_shipped(frame.sparkSession, "CountedRDD").newInstance(arguments), frame)
        """The same rows."""

    def rows(self) -> int:
        """The marked rows of all partitions that were read so far."""
        found: dict[tuple[int, int], int] = {}
        for told in self._told.value():
            mark, partition, rows = map(int, told.split())
            # Who stopped early, because it needed no more rows, has seen fewer.
            found[mark, partition] = max(rows, found.get((mark, partition), 0))
        return sum(found.values())


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
        self._rpc: list[Any] = []
        """The machines we have started; they live as long as these."""

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

    def add_machines(self, count: int, slots: int, memory_mb: int) -> None:
        """Start more machines of a `local-cluster` master, in this process like its others."""
        backend = self._scala.schedulerBackend()
        field = backend.getClass().getDeclaredField("masters")
        field.setAccessible(True)
        masters = field.get(backend)
        worker = getattr(getattr(self._jvm.org.apache.spark.deploy.worker, "Worker$"), "MODULE$")
        host = self._jvm.org.apache.spark.util.Utils.localHostName()
        nothing = self._jvm.scala.Option.empty()
        for _ in range(count):
            Executors._machines += 1
            number = self._jvm.scala.Option.apply(1000 + Executors._machines)
            conf = self._scala.conf().clone()
            self._rpc.append(
                worker.startRpcEnvAndEndpoint(host, 0, 0, slots, memory_mb, masters, None, number, conf, nothing)
            )

    def stop_machines(self) -> None:
        """Stop the machines that `add_machines` started."""
        for rpc in self._rpc:
            rpc.shutdown()
        self._rpc.clear()

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
