"""Every use of a non-public Spark or PySpark API, in one place.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

import atexit
import json
import shutil
import tempfile
import time
import uuid
import zipfile
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that Spark hands to Python, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows that Python hands to Spark."""
    return from_arrow_schema(schema)


def observed(observation: Observation, metric: str) -> int:
    """A metric of an observed DataFrame that was used; 0 if Spark found that it needed none of its rows."""
    java = observation._jo
    return int(observation.get[metric]) if java is not None and java.getRow().length() else 0


def _compiled(spark: SparkSession, source: str) -> Any:
    """A Java file beside this one, compiled in the driver by the compiler in Spark's own jars."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(source).read_text())
    return compiler


class Placement:
    """Puts each partition of a DataFrame on a chosen executor, and tells its task where it runs.

    Spark has a hook for it in the RDD and none in Python: a small Java class overrides it.
    """

    def __init__(self, spark: SparkSession, property_name: str) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._property = property_name
        self._constructor = self._compile(spark)

    def _compile(self, spark: SparkSession) -> Any:
        compiler = _compiled(spark, "PlacedRDD.java")
        # Executors that come later fetch the jar from the driver, so it has to stay.
        jar = Path(tempfile.mkdtemp(prefix="springtide-placement-"), f"placement-{uuid.uuid4().hex}.jar")
        atexit.register(shutil.rmtree, jar.parent, ignore_errors=True)
        classes = compiler.getBytecodes()
        with zipfile.ZipFile(jar, "w") as archive:
            for name in classes:
                archive.writestr(f"{name.replace('.', '/')}.class", bytes(classes[name]))
        spark.sparkContext._jsc.addJar(str(jar))
        return compiler.getClassLoader().loadClass("springtide.PlacedRDD").getConstructors()[0]

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
        rdd = self._constructor.newInstance(arguments)
        session = frame.sparkSession
        placed = session._jsparkSession.internalCreateDataFrame(rdd, frame._jdf.schema(), False)
        return DataFrame(placed, session)


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
        message = gateway.new_array(gateway.jvm.java.lang.Object, 2)
        message[0], message[1] = self._message("RequestWorkerState", "WorkerStateResponse")
        self._added = machines.getConstructors()[0].newInstance(message)
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
        before = self._added.count()
        ending = list(self._added.stop(most, ",".join(keep)))
        if ending:  # Through the master, as Spark's own way is for those who have registered.
            self._scala.schedulerBackend().doKillExecutors(self._jvm.PythonUtils.toSeq(ending))
        return int(before - self._added.count())

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
