"""The elastic pool: several workers under a plan that changes at epoch boundaries, by request or by loss."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from springtide.blocks.block import parse_slices
from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.python_check import check_elsewhere
from springtide.engine.migrate.live import Migrator
from springtide.engine.migrate.restore_job import RestoreJob
from springtide.engine.migrate.stop_and_swap import StopAndSwap
from springtide.engine.ownership.roster import Roster, ring_replicas
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.ownership.standby import Kept, Standbys, owed
from springtide.engine.pool.copy_job import CopyJob
from springtide.engine.pool.pending_work import waiting
from springtide.engine.pool.recovery import WATCH_S, Recovery
from springtide.engine.pool.replicator import Replicator
from springtide.engine.wire.retry_signals import Replan
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Behind, Parts
from springtide.engine.worker.store import Deposit
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, PlanVersion, SliceId, WorkerId
from springtide.migration.phase import Point
from springtide.migration.progress import Migration
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT
from springtide.plan.moves import SliceLoad
from springtide.plan.plan import Plan, assign
from springtide.plan.ring import Ring
from springtide.state.layout import Layout

ATTEMPTS = 6
"""How often an epoch is tried before the app fails."""
TASKS_EACH = 4
"""For each worker, so that every one of them gets some of the tasks that ask which Python it runs."""
LOSS_S = 3.0
"""How long after a failed job Spark may take to know that a worker is lost."""


@dataclass(frozen=True)
class ElasticPoolConfig:
    """How many workers, and how well they back each other up."""

    workers: int = 2
    replicas: int = 1
    """Workers that stand by for each slice."""
    zones: tuple[str, ...] = ()
    """Fault zones, given to workers in turn."""
    checkpoint_s: float = 2.0
    """Between two peer checkpoints."""
    start_s: float = 90.0
    """How long workers may take to come."""
    ready_s: float = 60.0
    """How long a migration's targets may take to be ready; then it is given up."""
    force: bool = False
    """Start also with more workers than there is room for."""


class ElasticPool:
    """Staff that grows, shrinks, moves and heals."""

    def __init__(
        self,
        app: str,
        spark: SparkSession,
        layouts: Mapping[str, Layout],
        slices: int,
        storage: Storage,
        config: ElasticPoolConfig,
        version: PlanVersion,
        watch: JobWatch,
        heat: Callable[[], SliceLoad] = dict,
    ) -> None:
        self.storage, self.watch = storage, watch
        self._hired = False
        hurry = threading.Event()
        self.cluster = Cluster(spark, watch, config.zones, self._employed)
        try:
            roster = self._hire(layouts, slices, config, version, hurry)
        except BaseException:
            self.cluster.stop()
            raise
        self.roster = SharedRoster(roster)
        self.replicator = Replicator(
            CopyJob(spark, self.cluster, storage, slices, watch), self.roster, layouts, config.checkpoint_s, hurry
        )
        self._context = spark.sparkContext
        tag = f"springtide-{app}"
        self.stopping = StopAndSwap(
            self.roster,
            self.cluster,
            RestoreJob(spark, self.cluster, storage, watch),
            lambda: self._context.cancelJobsWithTag(tag),
            config.start_s,
        )
        self.migrator = Migrator(
            self.roster,
            self.cluster,
            self.stopping,
            lambda: self.replicator.copied_bytes,
            heat,
            start_s=config.start_s,
            ready_s=config.ready_s,
        )
        self.recovery = Recovery(self.roster, self.cluster, self.migrator, self._context, tag, config.start_s)
        self._durable = True
        self._attempts = 0
        self._counting = threading.Lock()
        self._hired = True
        self.replicator.start()
        self.recovery.start()

    def _hire(
        self,
        layouts: Mapping[str, Layout],
        slices: int,
        config: ElasticPoolConfig,
        version: PlanVersion,
        hurry: threading.Event,
    ) -> Roster:
        """The first workers that come, warm, with an even share each."""
        self.cluster.check(config.workers, force=config.force)
        self.cluster.ask(config.workers)
        workers = self.cluster.wait_for(config.workers, config.start_s)[: config.workers]
        check_elsewhere(self.cluster.spark, TASKS_EACH * config.workers)
        self.cluster.warm_up([w.id for w in workers])
        ring = Ring.even(slices, workers)
        owners = ring.owners()
        share = assign(owners, ring_replicas(ring, owners, config.replicas), workers)
        plan = Plan(version, slices, tuple(workers), dict.fromkeys(layouts, share))
        return Roster(self.cluster, Standbys(), ring, plan, config.replicas, config.workers, hurry.set)

    def _employed(self) -> frozenset[WorkerId]:
        return frozenset(worker.id for worker in self.plan.workers) if self._hired else frozenset()

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.roster.plan

    def ring_order(self) -> tuple[WorkerId, ...]:
        """The workers clockwise on the ring."""
        with self.roster.held() as roster:
            return roster.ring.workers

    @property
    def begun(self) -> Epoch | None:
        """The last epoch that has begun."""
        with self.roster.held() as roster:
            return roster.begun

    @property
    def migration(self) -> Migration | None:
        """The migration under way, or else the last."""
        return self.migrator.current

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
        return self.stopping.due(here)

    def swap(self, keeping: StopState) -> Plan:
        plan = self.stopping.carry_out(keeping)
        with self.roster.held() as roster:
            self._durable = self._durable or roster.served is None
        return plan

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        with self.roster.held() as roster:
            share = roster.plan.operators[step]
            stalled = owed(state, share)
            if roster.served is None or roster.head is None:
                return stalled
            before = {SliceId(s): w for s, w in enumerate(roster.served.operators[step].owners)}
            return (*roster.standbys.takeovers(step, share, before, roster.head.epoch, state), *stalled)

    def parts(self) -> Mapping[WorkerId, Parts]:
        with self.roster.held() as roster:
            return roster.standbys.parts()

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        return self.cluster.place(frame, workers)

    def spread(self, frame: DataFrame) -> DataFrame:
        # A worker that has just come would take seconds for its first task: only those in the plan get any.
        return self.cluster.place(frame, [w.id for w in self.plan.workers])

    @contextmanager
    def job(self) -> Iterator[None]:
        self._context.addJobTag(self.recovery.tag)
        with self._counting:
            self.recovery.jobs += 1
        try:
            yield
        finally:
            with self._counting:
                self.recovery.jobs -= 1
            self._context.removeJobTag(self.recovery.tag)

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
        with self.roster.held() as roster:
            before = roster.served or roster.plan
            gone = roster.standbys.committed(manifest, parent, roster.plan, before, kept)
            roster.head, roster.served = manifest, roster.plan
            return gone

    def pinned(self) -> set[str]:
        with self.roster.held() as roster:
            return roster.standbys.pinned()

    def departed(self) -> tuple[WorkerId, ...]:
        return self.cluster.departed(frozenset(w.id for w in self.plan.workers))

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        found = []
        with self.roster.held() as roster:
            standbys, plan = roster.standbys, roster.plan
            for step, state in states.items():
                for run in state.runs:
                    if run.name not in stored:
                        holders = standbys.holders(run, parse_slices(run.slices), plan.operators[step], plan)
                        found += [Deposit(run, frozenset(slices), worker) for worker, slices in holders.items()]
        return found

    def unsound(self, faults: Sequence[Fault]) -> bool:
        with self.roster.held() as roster:
            return roster.standbys.unsound(faults)

    def went_back(self, head: Manifest | None) -> None:
        with self.roster.held() as roster:
            left, roster.standbys = roster.standbys.held(), Standbys()
            roster.standbys.given_up(left)
            roster.head, roster.served = head, None

    def stop(self) -> None:
        self.stopping.stop()
        self.recovery.stop()
        self.replicator.stop()
        self.cluster.stop()

    def scale(self, workers: int, strategy: str = DEFAULT, options: Options | None = None) -> Migration:
        """Grow or shrink to this number of workers; returns at once."""
        return self.migrator.scale(workers, strategy, options or Options())

    def move(
        self,
        operator: str,
        slices: frozenset[SliceId],
        to: WorkerId,
        strategy: str = DEFAULT,
        options: Options | None = None,
    ) -> Migration:
        """Move some slices of an operator to a worker; returns at once."""
        return self.migrator.move(operator, slices, to, strategy, options or Options())

    def cancel(self) -> Migration:
        """Give the migration under way up; slices that have moved go back."""
        return self.migrator.cancel()

    def backup_bytes(self) -> int:
        """Rows that workers keep for their neighbours, until a peer checkpoint covers them."""
        with self.roster.held() as roster:
            return roster.standbys.backup_bytes()

    def state_of(self, worker: WorkerId) -> str:
        """Ready, draining, starting or lost."""
        with self.roster.held() as roster:
            migration = self.migration
            going = migration.leaving if migration is not None and migration.under_way else frozenset()
            if worker in roster.leaving | going:
                return "draining"
            if self.plan.worker(worker) is None:
                return "starting"
            return "lost" if worker in roster.lost() else "ready"
