"""A roster with all that changes it, without Spark."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.executors.cluster import Cluster, NotEnoughWorkers
from springtide.engine.executors.tagged_jobs import TaggedJobs
from springtide.engine.migrate.growth import Growth
from springtide.engine.migrate.live_steps import LiveSteps
from springtide.engine.migrate.migrator import Migrator
from springtide.engine.migrate.stop_and_swap import StopAndSwap
from springtide.engine.ownership.roster import Roster, ring_replicas
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.ownership.standby import Backup, Kept, Standbys
from springtide.engine.pool.elastic import ElasticPool
from springtide.engine.pool.recovery import Recovery
from springtide.engine.pool.replicator import Replicator
from springtide.engine.spark.capacity import Capacity
from springtide.engine.worker.task_context import Storage
from springtide.ids import Epoch, PlanVersion, WorkerId
from springtide.migration.phase import Init
from springtide.plan.plan import Plan, assign
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.state.logic import Moment
from springtide.testing import ManualClock

STEP, SLICES = "counts", 16
A, B, C, D = map(WorkerId, "abcd")
LIVE = ["handover", "progressive", "partial_pause", "lazy"]


class FakeCluster:
    """Workers that come when they are asked for, as long as there are some."""

    def __init__(self, there: Sequence[WorkerId], spare: Sequence[WorkerId] = ()) -> None:
        self.there, self.spare = list(there), list(spare)
        self.asked: list[int] = []
        self.dismissed: set[WorkerId] = set()
        self.room = 100
        self.late: list[WorkerId] = []
        """Who comes after all, once nobody wants them any more."""
        self._before: frozenset[WorkerId] | None = None

    def check(self, total: int, *, force: bool = False) -> None:
        if not force:
            Capacity(self.room, because="this office").check(total)

    def give_back(self, wanted: int, before: frozenset[WorkerId]) -> None:
        self.asked.append(wanted)
        self._before = before
        self.sweep()

    def sweep(self) -> None:
        if self._before is not None:
            self.there += self.late
            self.late = []
            gone = [w for w in self.there if w not in self._before][: max(0, len(self.there) - self.asked[-1])]
            self.dismissed |= set(gone)
            self.there = [w for w in self.there if w not in gone]

    def alive(self) -> frozenset[WorkerId]:
        return frozenset(self.there)

    def workers(self) -> list[Worker]:
        return [Worker(w) for w in self.there]

    def ask(self, total: int) -> None:
        self.asked.append(total)
        while len(self.there) < total and self.spare:
            self.there.append(self.spare.pop(0))

    def wait_for(self, count: int, timeout_s: float, wanted: Callable[[], bool] = lambda: True) -> list[Worker]:
        deadline = time.monotonic() + timeout_s if self.slow else 0.0
        while wanted() and len(self.there) < count and time.monotonic() < deadline:
            threading.Event().wait(0.005)
        if wanted() and len(self.there) < count:
            raise NotEnoughWorkers(count, len(self.there), timeout_s)
        return self.workers()

    watch = None

    def departed(self, employed: frozenset[WorkerId]) -> tuple[WorkerId, ...]:
        return tuple(sorted(self.dismissed - employed))

    slow = False
    """Workers may take until the timeout to come."""

    def warm_up(self, workers: Sequence[WorkerId], wanted: Callable[[], bool] = lambda: True) -> frozenset[WorkerId]:
        return frozenset(workers)

    alone = True

    def replace(self, count: int, timeout_s: float) -> list[Worker]:
        old, self.there = self.there, []
        self.dismissed |= set(old)
        self.ask(count)
        if not self.there:
            raise NotEnoughWorkers(count, 0, timeout_s)
        return self.workers()

    def dismiss(self, workers: Iterable[WorkerId], wanted: int) -> None:
        self.ask(wanted)
        self.dismissed |= set(workers)
        self.there = [w for w in self.there if w not in self.dismissed]


class FakeJobs:
    """No jobs."""

    count = 0

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


class Office:
    """A roster with all that changes it, and epochs that are nothing but commits."""

    def __init__(self, there: Sequence[WorkerId], spare: Sequence[WorkerId] = (), *, ready_s: float = 60.0) -> None:
        self.clock = ManualClock()
        """Of the migrator."""
        self.copied_bytes = 0
        """By peer checkpoints, as the migrator is told."""
        self.cluster = FakeCluster(there, spare)
        workers = self.cluster.workers()
        ring = Ring.even(SLICES, workers)
        share = assign(ring.owners(), ring_replicas(ring, ring.owners(), 1), workers)
        plan = Plan(PlanVersion(1), SLICES, tuple(workers), {STEP: share})
        self.roster = Roster(cast(Cluster, self.cluster), Standbys(), ring, plan, 1, len(there))
        self.restored: list[tuple[Init, States, tuple[WorkerId, ...]]] = []
        jobs = FakeJobs()
        self.cancelled = jobs.cancelled
        self.shared, cluster = SharedRoster(self.roster), cast(Cluster, self.cluster)
        self.stopping = StopAndSwap(self.shared, cluster, self.restore, jobs.cancel, 0.0)
        growth = Growth(self.shared, cluster, 1.0)
        steps = LiveSteps(self.shared, growth, lambda: self.copied_bytes, ready_s, self.clock)
        self.migrator = Migrator(self.shared, cluster, growth, steps, self.stopping)
        tagged = cast(TaggedJobs, jobs)
        self.recovery = Recovery(self.shared, cluster, self.migrator, tagged, 1.0)
        nobody, nowhere = cast(Replicator, None), Storage("", "")
        self.pool = ElasticPool(cluster, self.shared, self.migrator, nobody, self.recovery, tagged, nowhere)

    def restore(self, init: Init, states: States, plan: Plan, timeout_s: float) -> bool:
        self.restored.append((init, states, tuple(worker.id for worker in plan.workers)))
        return True

    def epoch(self, *, checkpoint: bool = True) -> None:
        """A boundary, an epoch, and a peer checkpoint of it."""
        parent = self.roster.head
        self.commit(self.pool.boundary(parent), parent)
        if checkpoint:
            self.copied()

    def commit(self, plan: Plan, parent: Manifest | None) -> None:
        """An epoch under a plan is true."""
        share = plan.operators[STEP]
        kept = {w.id: Backup(share.standby(w.id), None) for w in plan.workers}
        number = Epoch(0 if parent is None else parent.epoch + 1)
        manifest = Manifest("app", number, "", plan.version, 1, {STEP: OperatorState()})
        self.pool.state.committed(manifest, parent, {STEP: Kept(Moment(), kept)})

    def copied(self) -> None:
        """A peer checkpoint of the last epoch, as one happens beside the epochs."""
        head = self.roster.head
        assert head is not None
        self.roster.standbys.copying(head)
        self.roster.standbys.copied(head, self.roster.plan, [])

    def epochs(self, condition: Callable[[], bool], most: int = 40) -> None:
        """Epochs until a condition holds."""
        for _ in range(most):
            if condition():
                return
            self.epoch()
        raise AssertionError(f"not within {most} epochs")

    def owners(self) -> tuple[WorkerId, ...]:
        return self.roster.plan.operators[STEP].owners

    def shares(self) -> dict[WorkerId, int]:
        return {w: self.owners().count(w) for w in dict.fromkeys(self.owners())}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)
