"""The executors of a Spark application, and the machines of a cluster in a box."""

from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from springtide.engine.spark.internals.java_classes import compiled
from springtide.private import OWNER_ONLY, make_private


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
        loader = compiled(spark, "ActiveExecutors.java").getClassLoader()
        self._of = loader.loadClass("springtide.ActiveExecutors").getDeclaredMethods()[0]
        gateway: Any = self._context._gateway
        self._arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
        self._arguments[0] = self._scala.schedulerBackend()
        machines = compiled(spark, "Machines.java").getClassLoader().loadClass("springtide.Machines")
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
        """Ask for `total` executors in all; False if the cluster manager would not hear of it."""
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

    def close_pages(self) -> None:
        """Close the web pages of a `local-cluster` master and its machines; `add_machine` closes its own."""
        self._added.closePages()

    def added_machines(self) -> int:
        """How many machines that `add_machine` started are there, but for those that are being stopped."""
        return int(self._added.count())

    def stop_machines(self, most: int, keep: Set[str]) -> None:
        """Begin to stop at most `most` machines that `add_machine` started, the last first.

        Their executors end with them, so those that run any of `keep` stay; and one that Spark gives a new executor
        before it has ended stays, too.
        """
        ending = list(self._added.stop(most, ",".join(keep)))
        if ending:  # Through the master, as Spark's own way is for those who have registered.
            self._scala.schedulerBackend().doKillExecutors(self._jvm.PythonUtils.toSeq(ending))

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


def executor_files(spark: SparkSession) -> Path:
    """Where a `local-cluster` master keeps the logs and jars of an application's executors."""
    return _all_executor_files() / spark.sparkContext.applicationId


def _all_executor_files() -> Path:
    """Those of all applications: Spark has no setting for it."""
    return Path(_find_spark_home(), "work")


def make_room_for_executor_files() -> None:
    """Before a `local-cluster` master is started: where it keeps its files, only their owner can read them."""
    with suppress(OSError):  # Spark fails for the same reason, and says which.
        make_private(_all_executor_files())


def close_executor_files(spark: SparkSession) -> None:
    """Also if the place was there, and others can look into it: not into what is this application's."""
    files = executor_files(spark)
    make_private(files)
    files.chmod(OWNER_ONLY)
