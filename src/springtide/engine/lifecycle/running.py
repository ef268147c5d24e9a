"""A running app: started, watched, stopped."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from springtide.blocks.claim import Claim, claim
from springtide.blocks.collect import Collector
from springtide.blocks.errors import TakenOver
from springtide.blocks.generation import SPARK, current, open_generation
from springtide.blocks.leftovers import driver_name
from springtide.blocks.log import ManifestLog
from springtide.blocks.patience import FencedStore, PatientStore
from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore, Store, open_store
from springtide.builder import Dataflow
from springtide.dataflow.accuracy import shedding
from springtide.dataflow.graph import Source
from springtide.engine.durability.history import History
from springtide.engine.epoch.binding import bind
from springtide.engine.epoch.closing import Closing
from springtide.engine.epoch.compute import EpochComputation
from springtide.engine.epoch.inputs import Inputs
from springtide.engine.epoch.publisher import Publisher
from springtide.engine.epoch.reporter import Reporter
from springtide.engine.epoch.runner import EpochRunner
from springtide.engine.epoch.sink_checks import check_sinks
from springtide.engine.epoch.source_progress import Progress
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.python_check import check_here
from springtide.engine.executors.shared import Lease
from springtide.engine.lifecycle.config import (
    RunConfig,
    check_accuracy,
    check_interval,
    check_replayable,
    check_room,
    check_speculation,
)
from springtide.engine.lifecycle.file_systems import check_checkpoint, check_sources
from springtide.engine.lifecycle.idle_epochs import IdleEpochs
from springtide.engine.lifecycle.local_directory import blocks_directory
from springtide.engine.lifecycle.query_supervisor import QuerySupervisor
from springtide.engine.lifecycle.read_limits import ReadLimits
from springtide.engine.lifecycle.report_log import ReportLog, last_told
from springtide.engine.lifecycle.root_cause import by_claim, by_spark
from springtide.engine.lifecycle.start_pool import start_pool
from springtide.engine.lifecycle.stop_condition import Covered
from springtide.engine.ownership.slice_load import slice_load
from springtide.engine.pool.elastic import ElasticPool
from springtide.engine.pool.keyed_state import KeyedState
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.pool.store_job import StoreJob
from springtide.engine.spark.connector_settings import equipped
from springtide.engine.spark.internals import Nudges, await_sources
from springtide.engine.spark.session import log_settings, make_session
from springtide.engine.worker.task_context import Storage
from springtide.ids import PlanVersion, SliceId, WorkerId
from springtide.logs import room_logger
from springtide.metrics.report import EpochReport
from springtide.metrics.totals import Totals
from springtide.migration.errors import Refused
from springtide.migration.progress import Migration
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT
from springtide.plan.plan import Plan
from springtide.plan.shedding import Shedding
from springtide.private import make_private
from springtide.scratch import make_scratch, remove_scratch
from springtide.state.clock import Clock, EventTime

POLL_S = 0.2
SOURCES_OPEN_S = 60.0
"""How often a waiting caller looks whether the query has ended by itself."""
RETAINED_INTERVALS = 8
"""Spark's log must reach back beyond the last durable checkpoint, however late it is."""
Listener = Callable[[EpochReport], None]

log = room_logger(__name__)


class Running:
    """An app at work. Use `wait` to see it end, `stop` to end it after the epoch in flight."""

    def __init__(
        self,
        dataflow: Dataflow,
        config: RunConfig,
        spark: SparkSession | None,
        listeners: list[Listener],
        on_start: Callable[[str], None] = lambda part: None,
    ) -> None:
        self.config = config
        self.listeners = listeners
        self.reports: list[EpochReport] = []
        """Of the last epochs, as many as the config says. Each epoch makes another list: one at hand stays as it is."""
        self._covered = Covered()
        self.totals = Totals()
        """What the epochs of this run come to."""
        self._done = threading.Event()
        self._lost: TakenOver | None = None
        """Another driver holds the checkpoint now."""
        spark = spark or SparkSession.getActiveSession()
        self._claim: Claim | None = None
        self._pool: ExecutorPool | None = None
        self._watch: JobWatch | None = None
        self._scratch: Path | None = None
        self.at_end: list[Callable[[], None]] = []
        """Called when the app ends, however it ends."""
        store = open_store(_absolute(config.checkpoint))
        self.store: Store = store
        """For what is told of the app while it runs."""
        self.graph = dataflow.graph()  # One that does not hold together is refused before Spark starts.
        self._on_start = on_start
        made = spark is None
        if made:
            check_room(config)
            on_start("Spark")
        self._spark = spark or make_session(dataflow.name, equipped(config.session, self.graph))
        self._limits = ReadLimits.of(self._spark, [source.name for source in self.graph.of(Source)])
        self._aligns = False
        self._held_back: Set[str] = frozenset()
        """The sources that are held back, as was told last."""
        self._lease = Lease(self._spark, made=made)
        try:
            self._supervisor = self._start(dataflow, store)
        except BaseException as error:
            self._close()
            raise by_spark(error, self._spark)  # noqa: B904  It has its cause, if it is another one.
        self._started = time.monotonic()
        aligned = any(source.align_us is not None for source in self.graph.of(Source))
        self._aligns = aligned and not config.until.available  # From now on there is a query that can be told.

    def _start(self, dataflow: Dataflow, store: Store) -> QuerySupervisor:
        graph, spark, config = self.graph, self._spark, self.config
        check_here(spark)
        check_checkpoint(spark, store.url)
        check_sources(spark, graph)
        check_interval(config, spark)
        check_speculation(config, spark)
        inputs = Inputs.open(spark, graph)
        check_sinks(graph, current(store))
        bound = bind(graph, spark, inputs.rows(inputs.stream), dataflow.slices)
        # A changed app, a newer format and a second driver are refused before anything is written.
        kinds = {source.name: source.spec.kind for source in graph.of(Source)}
        record = AppRecord(dataflow.name, dataflow.slices, bound.describe(), inputs.names, kinds)
        record.check(store)
        ManifestLog(current(store)).check_readable()
        if isinstance(store, LocalStore):
            make_private(store.root)
        self._claim = held = claim(store)
        held.on_lost = self._taken_over
        self.store = FencedStore(store, held)
        store = PatientStore(store)
        own = open_generation(store, held)
        record.write(self.store)
        self._log, self._told = ReportLog(store, config.keep_reports, held.generation), last_told(store)
        if config.local is not None:
            local = blocks_directory(_absolute(config.local), dataflow.name, store.url)
        else:
            self._scratch = make_scratch(dataflow.name)
            local = str(self._scratch)
        self._watch = JobWatch(spark.sparkContext, config.stall_s)
        self._watch.on_stuck = self.finish
        self._watch.start()
        storage = Storage(local, store.url, config.pool is not None, driver_name(held.generation))
        if config.pool is not None:
            self._on_start(f"{config.pool.workers} workers")
        head = ManifestLog(own).head()
        version = PlanVersion(1 if head is None else head.plan + 1)
        state = KeyedState(dataflow.name, bound.layouts, dataflow.slices, storage, version)
        self._pool = start_pool(spark, state, config, self._watch, lambda: slice_load(self.reports))
        # Embedded, and with every epoch durable, nothing waits for an epoch but rows, and what time makes due.
        ends = config.until.available  # With its input: the wall clock could keep it from that.
        timed = any(isinstance(logic.clock, EventTime if ends else Clock) for logic in bound.logics.values())
        nudges = Nudges(spark) if config.pool is not None or timed else None
        history = History(
            own,
            config.durable_every,
            StoreJob(spark, self._pool),
            fence=held,
            sources=len(inputs.names),
            nudged=nudges is not None,
        )
        progress = Progress(graph, store=own)
        self.at_end += [progress.close, history.durability.close]
        runner = EpochRunner(
            history,
            self._pool,
            Collector(history.log, store),
            EpochComputation(dataflow.name, bound, inputs, history, self._pool),
            Publisher(bound, history, self._pool),
            Reporter(dataflow.name, graph, progress, self._on_report),
            Closing(bound, nudges.nudge) if ends and nudges is not None else None,
        )

        def start(trigger: Mapping[str, Any]) -> StreamingQuery:
            stream = inputs.stream if nudges is None else nudges.beside(inputs.stream)
            writer = stream.writeStream.foreachBatch(runner).queryName(dataflow.name)
            writer = writer.option("checkpointLocation", f"{own.url}/{SPARK}").trigger(**trigger)
            with log_settings(spark, own.url, config.durable_every.epochs * RETAINED_INTERVALS):
                query = writer.start()
                await_sources(query, SOURCES_OPEN_S)  # Each has a log of its own, with the settings of this moment.
            return query

        self._on_start("first epoch")
        paced = {"processingTime": f"{round(config.trigger_s * 1000)} milliseconds"}
        supervisor = QuerySupervisor(runner, start, {"availableNow": True} if ends else paced)
        idle_epochs = IdleEpochs(runner, None if ends or nudges is None else nudges.nudge, self._align)
        self.at_end.insert(0, idle_epochs.stop)
        idle_epochs.start()
        return supervisor

    @property
    def active(self) -> bool:
        """Whether there are epochs to come."""
        return self._supervisor.active

    @property
    def query(self) -> StreamingQuery:
        """Spark's query."""
        return self._supervisor.query

    @property
    def pool(self) -> ElasticPool:
        """The workers, and how to change them."""
        if not isinstance(self._pool, ElasticPool):
            raise Refused("expected an app on several workers, got one on a single one: start it with workers=N")
        return self._pool

    def scale(self, workers: int, strategy: str = DEFAULT, options: Options | None = None) -> Migration:
        """Grow or shrink to this number of workers while the app runs; returns at once."""
        check_replayable(self.graph, strategy)
        return self.pool.migrator.scale(workers, strategy, options or Options())

    def move(
        self, operator: str, slices: Iterable[int], to: str, strategy: str = DEFAULT, options: Options | None = None
    ) -> Migration:
        """Move some slices of a keyed step to a worker while the app runs; returns at once."""
        moving = frozenset(map(SliceId, slices))
        return self.pool.migrator.move(operator, moving, WorkerId(to), strategy, options or Options())

    def shed(self, accuracies: Mapping[str, float]) -> Shedding:
        """From the next epoch on, process these shares of the sources' rows for queries, and all for the others."""
        for query, accuracy in accuracies.items():
            check_accuracy(self.graph, query, accuracy)
        rates = shedding(self.graph, accuracies)
        self._supervisor.runner.shedding = rates
        return rates

    def admit(self, rows: Mapping[str, int]) -> None:
        """From the next epoch on, take at most these rows from each source in an epoch; the rest waits."""
        self._limits.admit(self.query, rows)

    def _align(self) -> None:
        """From the next epoch on, hold back sources that are too far ahead of others, and no others."""
        if not self._aligns:
            return
        held = self._supervisor.runner.held_back()
        for name in held.keys() - self._held_back:
            log.info("source %r is held back: %s", name, held[name].because)
        for name in self._held_back - held.keys():
            log.info("source %r goes on", name)
        self._held_back = held.keys()
        self._limits.hold(self.query, held)

    @property
    def cores(self) -> int:
        """The tasks that Spark runs at once."""
        return self._spark.sparkContext.defaultParallelism

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        if self._pool is None:
            raise Refused("expected a running app, got one that has ended")
        return self._pool.plan

    def _on_report(self, report: EpochReport) -> None:
        report = replace(report, untold=report.replayed and report.epoch > self._told)
        self._told = max(self._told, report.epoch)
        self._log.append(report)
        self.reports = [*self.reports, report][-self.config.keep_reports :]
        self._covered, self.totals = self._covered.after(report), self.totals.after(report)
        self._align()
        for listener in self.listeners:
            listener(report)
        if self.config.until.reached(self._covered):
            self._done.set()

    def finish(self) -> None:
        """Let whoever waits stop the app after the epoch in flight."""
        self._done.set()

    def _taken_over(self, error: TakenOver) -> None:
        self._lost = error
        self.finish()

    def wait(self, timeout_s: float | None = None) -> list[EpochReport]:
        """Wait until the app ends by itself, then clean up; the last reports. Raises what made it fail.

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
        supervisor = self._supervisor
        failure: BaseException | None = None
        try:
            supervisor.stop()
            failure = supervisor.failure
            if failure is None:
                supervisor.runner.finish()
        except Exception as error:
            failure = supervisor.failure or error
        finally:
            if failure is not None and self._claim is not None:
                failure = by_claim(failure, self._claim)
            self._close()
        if failure := failure or self._lost:
            raise by_spark(failure, self._spark)
        return self.reports

    def _close(self) -> None:
        """Let everything go, each part whatever became of the others."""
        pool, self._pool = self._pool, None
        watch, self._watch = self._watch, None
        held, self._claim = self._claim, None
        ends: list[Callable[[], object]] = [*self.at_end]
        self.at_end.clear()
        if pool is not None:
            ends.append(pool.stop)
        if watch is not None:
            ends.append(watch.stop)
        if held is not None:
            ends.append(held.release)
        if self._scratch is not None:
            ends.append(partial(remove_scratch, self._scratch))
        for end in [*ends, self._lease.give_back]:
            try:
                end()
            except Exception as error:
                log.warning("could not be let go in good order: %s: %s", type(error).__name__, error)


def _absolute(checkpoint: str) -> str:
    return checkpoint if "://" in checkpoint else str(Path(os.path.abspath(os.path.expanduser(checkpoint))))
