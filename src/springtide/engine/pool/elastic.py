"""The elastic pool: several workers under a plan that changes at epoch boundaries, by request or by loss."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from springtide.blocks.manifest import Manifest
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.tagged_jobs import TaggedJobs
from springtide.engine.migrate.growth import Growth
from springtide.engine.migrate.live_steps import LiveSteps
from springtide.engine.migrate.migrator import Migrator
from springtide.engine.migrate.restore_job import RestoreJob
from springtide.engine.migrate.stop_and_swap import StopAndSwap
from springtide.engine.ownership.held_state import HeldState, ReplicatedState
from springtide.engine.ownership.roster import Roster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.ownership.standby import Standbys
from springtide.engine.pool.copy_job import CopyJob
from springtide.engine.pool.hire import ElasticPoolConfig, hire
from springtide.engine.pool.keyed_state import KeyedState
from springtide.engine.pool.pending_work import waiting
from springtide.engine.pool.recovery import WATCH_S, Recovery
from springtide.engine.pool.replicator import Replicator
from springtide.engine.wire.retry_signals import Replan
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, WorkerId
from springtide.migration.phase import Point
from springtide.plan.moves import SliceLoad
from springtide.plan.plan import Plan

ATTEMPTS = 6
"""How often an epoch is tried before the app fails."""
LOSS_S = 3.0
"""How long after a failed job Spark may take to know that a worker is lost."""


class ElasticPool:
    """An ExecutorPool that grows, shrinks, moves and heals."""

    def __init__(
        self,
        cluster: Cluster,
        roster: SharedRoster,
        migrator: Migrator,
        replicator: Replicator,
        recovery: Recovery,
        jobs: TaggedJobs,
        storage: Storage,
    ) -> None:
        self.cluster, self.roster, self.storage, self.watch = cluster, roster, storage, cluster.watch
        self.state: HeldState = ReplicatedState(roster)
        self.migrator = migrator
        """Who grows, shrinks and moves it."""
        self.replicator, self.recovery = replicator, recovery
        self._stopping, self._jobs = migrator.stopping, jobs
        self._durable = True
        self._attempts = 0

    def start(self) -> None:
        """Begin with what runs beside the epochs."""
        self.replicator.start()
        self.recovery.start()

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.roster.plan

    @property
    def durable(self) -> bool:
        return self._durable

    def boundary(self, head: Manifest | None) -> Plan:
        with self.roster.held() as roster:
            roster.head = head
            roster.begun = Epoch(0 if head is None else head.epoch + 1)
            self._attempts = 0
            self._durable = roster.served is None
        recovered = self.recovery.recover()
        with self.roster.held() as roster:
            if not recovered and head is not None:
                self.migrator.advance()
            idle = set[WorkerId]() if self.migrator.busy else roster.settle()
            plan, wanted = roster.plan, roster.wanted
        if idle:
            self.cluster.dismiss(idle, wanted)
        return plan

    def replan(self, error: Exception, head: Manifest | None) -> Plan:
        self._attempts += 1
        if self._attempts >= ATTEMPTS:
            raise error
        deadline = time.monotonic() + (0.0 if isinstance(error, Replan) else LOSS_S)
        while True:
            if self.recovery.recover():
                return self.plan
            if time.monotonic() >= deadline:
                break
            time.sleep(WATCH_S)
        if not isinstance(error, Replan):
            raise error
        with self.roster.held() as roster:
            for worker, slices in error.missing.items():
                roster.standbys.lacking(error.step, worker, slices)
                self._durable = True
            return roster.plan

    def waiting(self) -> str | None:
        return waiting(self.roster, self.migrator)

    def due(self, here: Point) -> bool:
        return self._stopping.due(here)

    def swap(self, keeping: StopState) -> Plan:
        plan = self._stopping.carry_out(keeping)
        with self.roster.held() as roster:
            self._durable = self._durable or roster.served is None
        return plan

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        return self.cluster.place(frame, workers)

    def spread(self, frame: DataFrame) -> DataFrame:
        # A worker that has just come would take seconds for its first task: only those in the plan get any.
        return self.cluster.place(frame, [w.id for w in self.plan.workers])

    def job(self) -> AbstractContextManager[None]:
        return self._jobs.job()

    def departed(self) -> tuple[WorkerId, ...]:
        return self.cluster.departed(frozenset(w.id for w in self.plan.workers))

    def stop(self) -> None:
        self._stopping.stop()
        self.migrator.stop()
        self.recovery.stop()
        self.replicator.stop()
        self.cluster.stop()


def start_elastic(
    spark: SparkSession,
    state: KeyedState,
    config: ElasticPoolConfig,
    watch: JobWatch,
    heat: Callable[[], SliceLoad],
) -> ElasticPool:
    """A pool with its first workers, and with all that runs beside the epochs."""
    cluster = Cluster(spark, watch, config.zones)
    try:
        ring, plan = hire(cluster, state, config)
    except BaseException:
        cluster.stop()
        raise
    hurry = threading.Event()
    roster = SharedRoster(Roster(cluster, Standbys(), ring, plan, config.replicas, config.workers, hurry.set))
    cluster.employ(lambda: frozenset(worker.id for worker in roster.plan.workers))
    copies = CopyJob(spark, cluster, state.storage, state.slices, watch)
    replicator = Replicator(copies, roster, state.layouts, config.checkpoint_s, hurry)
    jobs = TaggedJobs(spark.sparkContext, state.app)
    restore = RestoreJob(spark, cluster, state.storage, watch)
    growth = Growth(roster, cluster, config.start_s)
    steps = LiveSteps(roster, growth, lambda: replicator.copied_bytes, config.ready_s)
    stopping = StopAndSwap(roster, cluster, restore, jobs.cancel, config.start_s)
    migrator = Migrator(roster, cluster, growth, steps, stopping, heat)
    recovery = Recovery(roster, cluster, migrator, jobs, config.start_s)
    pool = ElasticPool(cluster, roster, migrator, replicator, recovery, jobs, state.storage)
    pool.start()
    return pool
