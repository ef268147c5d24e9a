"""A running app: started, watched, stopped."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from springtide.blocks.claim import Claim, claim
from springtide.blocks.log import ManifestLog
from springtide.blocks.patience import PatientStore
from springtide.blocks.record import AppRecord
from springtide.blocks.store import Store, open_store
from springtide.dataflow.builder import Dataflow
from springtide.dataflow.economy import shedding
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Source
from springtide.engine.bound import BoundGraph, bind
from springtide.engine.conductor import Conductor
from springtide.engine.config import RunConfig, check_accuracy, check_interval, check_replayable
from springtide.engine.depositing import Depositing
from springtide.engine.epoch import EpochRunner
from springtide.engine.heat import heat
from springtide.engine.history import History
from springtide.engine.inputs import Inputs
from springtide.engine.job_watch import JobWatch
from springtide.engine.kafka.session import equipped
from springtide.engine.outlets import check_sinks
from springtide.engine.progress import Progress
from springtide.engine.reports import ReportLog
from springtide.engine.session import make_session, retaining
from springtide.engine.sharing import Lease
from springtide.engine.spark_internals import admit
from springtide.engine.sparklog import DIRECTORY as SPARK_LOG
from springtide.engine.staff import Alone, Staff
from springtide.engine.worker.task import Storage
from springtide.engine.workforce import Workforce
from springtide.ids import PlanVersion, SliceId, WorkerId
from springtide.metrics.report import EpochReport
from springtide.migration.errors import Refused
from springtide.migration.progress import Migration
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT
from springtide.plan.plan import Plan, even_plan
from springtide.plan.shedding import Shedding

EMBEDDED = WorkerId("driver")
POLL_S = 0.2
"""How often a waiting caller looks whether the query has ended by itself."""
RETAINED_INTERVALS = 8
"""Spark's log must reach back beyond the last durable checkpoint, however late it is."""
Listener = Callable[[EpochReport], None]


class Running:
    """An app at work. Use `wait` to see it end, `stop` to end it after the epoch in flight."""

    def __init__(
        self, dataflow: Dataflow, config: RunConfig, spark: SparkSession | None, listeners: list[Listener]
    ) -> None:
        self.config = config
        self.listeners = listeners
        self.reports: list[EpochReport] = []
        self._done = threading.Event()
        spark = spark or SparkSession.getActiveSession()
        self._claim: Claim | None = None
        self._staff: Staff | None = None
        self._watch: JobWatch | None = None
        self._scratch: str | None = None
        self.at_end: list[Callable[[], None]] = []
        """Called when the app ends, however it ends."""
        self.store = store = open_store(_absolute(config.checkpoint))
        self.graph = dataflow.graph()  # One that does not hold together is refused before Spark starts.
        made = spark is None
        self._spark = spark or make_session(dataflow.name, equipped(config.session, self.graph))
        self._lease = Lease(self._spark, made=made)
        try:
            self._conductor = self._start(dataflow, store)
        except BaseException:
            self._close()
            raise
        self._started = time.monotonic()

    def _start(self, dataflow: Dataflow, store: Store) -> Conductor:
        graph, spark, config = self.graph, self._spark, self.config
        check_interval(config, spark)
        inputs = Inputs.open(spark, graph)
        check_sinks(graph)
        bound = bind(graph, spark, inputs.split(inputs.stream), dataflow.slices)
        # A changed app, a newer format and a second driver are refused before anything is written.
        record = AppRecord(dataflow.name, dataflow.slices, bound.describe(), inputs.names)
        record.check(store)
        ManifestLog(store).check_readable()
        self._claim = claim(store)
        record.write(store)
        self._log = ReportLog(store)
        local = None if config.local is None else _absolute(config.local)
        if local is None:
            local = self._scratch = tempfile.mkdtemp(prefix=f"springtide-{dataflow.name}-")
        self._watch = JobWatch(spark.sparkContext, config.stall_s)
        self._watch.on_stuck = self.finish
        self._watch.start()
        self._staff = self._hire(dataflow, bound, self._watch, Storage(local, store.url, config.workforce is not None))
        history = History(PatientStore(store), config.durable_every, Depositing(spark, self._staff))
        progress = Progress(graph, store=store)
        self.at_end.append(progress.close)
        runner = EpochRunner(
            dataflow.name, bound, inputs, history, self._staff, self._claim.generation, progress, self._on_report
        )  # fmt: skip

        def start(trigger: Mapping[str, Any]) -> StreamingQuery:
            writer = inputs.stream.writeStream.foreachBatch(runner).queryName(dataflow.name)
            writer = writer.option("checkpointLocation", f"{store.url}/{SPARK_LOG}").trigger(**trigger)
            with retaining(spark, config.durable_every.epochs * RETAINED_INTERVALS):
                return writer.start()

        if config.until.available:
            return Conductor(runner, start, {"availableNow": True})
        return Conductor(runner, start, {"processingTime": f"{round(config.trigger_s * 1000)} milliseconds"})

    def _hire(self, dataflow: Dataflow, bound: BoundGraph, watch: JobWatch, storage: Storage) -> Staff:
        config, spark = self.config, self._spark
        head = ManifestLog(open_store(storage.durable)).head()
        version = PlanVersion(1 if head is None else head.plan + 1)
        if config.workforce is not None:
            layouts = {step: logic.layout for step, logic in bound.logics.items()}
            return Workforce(
                dataflow.name, spark, layouts, dataflow.slices, storage, config.workforce, version,
                watch, lambda: heat(self.reports),
            )  # fmt: skip
        plan = even_plan(
            tuple(bound.logics),
            slices=dataflow.slices,
            instances=config.instances or min(spark.sparkContext.defaultParallelism, dataflow.slices),
            worker=EMBEDDED,
            version=version,
        )
        return Alone(plan, storage, watch)

    @property
    def active(self) -> bool:
        """Whether there are epochs to come."""
        return self._conductor.active

    @property
    def query(self) -> StreamingQuery:
        """Spark's query."""
        return self._conductor.query

    @property
    def workforce(self) -> Workforce:
        """The workers, and how to change them."""
        if not isinstance(self._staff, Workforce):
            raise Refused("expected an app on several workers, got one on a single one: start it with workers=N")
        return self._staff

    def scale(self, workers: int, strategy: str = DEFAULT, options: Options | None = None) -> Migration:
        """Grow or shrink to so many workers while the app runs; returns at once."""
        check_replayable(self.graph, strategy)
        return self.workforce.scale(workers, strategy, options)

    def move(
        self, operator: str, slices: Iterable[int], to: str, strategy: str = DEFAULT, options: Options | None = None
    ) -> Migration:
        """Move some slices of a keyed step to a worker while the app runs; returns at once."""
        return self.workforce.move(operator, frozenset(map(SliceId, slices)), WorkerId(to), strategy, options)

    def shed(self, accuracies: Mapping[str, float]) -> Shedding:
        """From the next epoch on, process these shares of the sources' rows for queries, and all for the others."""
        for query, accuracy in accuracies.items():
            check_accuracy(self.graph, query, accuracy)
        rates = shedding(self.graph, accuracies)
        self._conductor.runner.shedding = rates
        return rates

    def admit(self, rows: Mapping[str, int]) -> None:
        """From the next epoch on, take at most so many rows from sources in an epoch; the rest waits."""
        admit(self._spark, self.query, [rows.get(source.name) for source in self.graph.of(Source)])

    @property
    def cores(self) -> int:
        """The tasks that Spark runs at once."""
        return self._spark.sparkContext.defaultParallelism

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        if self._staff is None:
            raise Refused("expected a running app, got one that has ended")
        return self._staff.plan

    def _on_report(self, report: EpochReport) -> None:
        self._log.append(report)
        self.reports.append(report)
        for listener in self.listeners:
            listener(report)
        if self.config.until.reached(self.reports):
            self._done.set()

    def finish(self) -> None:
        """Let whoever waits stop the app after the epoch in flight."""
        self._done.set()

    def wait(self, timeout_s: float | None = None) -> list[EpochReport]:
        """Wait until the app ends by itself, then clean up; raises what made it fail.

        With a timeout, TimeoutError if it still runs then.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._ended():
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"the app still runs after {timeout_s} s")
        return self.stop()

    def _ended(self) -> bool:
        """Wait a moment; True if the query ended or the app reached its end."""
        if self._done.wait(POLL_S) or not self.active:
            return True
        seconds = self.config.until.seconds
        return seconds is not None and time.monotonic() - self._started >= seconds

    def stop(self) -> list[EpochReport]:
        """Finish the epoch in flight, stop the query, give the checkpoint back.

        WaitedTooLong if the epoch in flight gives no sign of life; it is left behind, and does not become true.
        """
        conductor = self._conductor
        try:
            conductor.stop()
            failure = conductor.failure
            if failure is None:
                conductor.runner.finish()
        finally:
            self._close()
        if failure is not None:
            raise failure if not isinstance(failure, PySparkException) else _named(failure)
        return self.reports

    def _close(self) -> None:
        for call in self.at_end:
            call()
        self.at_end.clear()
        staff, self._staff = self._staff, None
        if staff is not None:
            staff.stop()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()
        if self._claim is not None:
            self._claim.release()
            self._claim = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._lease.give_back()


def _named(failure: PySparkException) -> StepFailed:
    text = str(failure).split("\n\nJVM")[0]
    return StepFailed("app", "reading its sources", text.strip())


def _absolute(checkpoint: str) -> str:
    return checkpoint if "://" in checkpoint else str(Path(os.path.abspath(os.path.expanduser(checkpoint))))
