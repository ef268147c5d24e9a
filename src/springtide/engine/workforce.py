"""The workforce: several workers under a plan that changes at epoch boundaries, by request or by loss."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from springtide import faults
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.engine.checkpointer import Checkpointer
from springtide.engine.cluster import Cluster, NotEnoughWorkers
from springtide.engine.copying import Copying
from springtide.engine.keyed import Replan
from springtide.engine.standby import Kept, Standbys, owed
from springtide.engine.worker.opening import Behind, Parts
from springtide.engine.worker.task import Storage
from springtide.ids import Epoch, PlanVersion, SliceId, WorkerId
from springtide.migration.errors import Busy, Refused, Unknown
from springtide.migration.progress import CANCELLED, DONE, FAILED, MOVING, Migration
from springtide.migration.step import Flip, Hold, Options, Stall, Supply
from springtide.migration.strategies import DEFAULT, STRATEGIES
from springtide.plan.moves import Move, moves
from springtide.plan.plan import Plan, assign
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.state.layout import Layout

ATTEMPTS = 6
"""An epoch is given up after so many."""
LOSS_S = 3.0
"""How long after a failed job Spark may take to know that a worker is lost."""
WATCH_S = 0.1
GRACE_S = 4.0
"""How long a job may go on after a worker was lost."""

Replicas = dict[str, list[tuple[WorkerId, ...]]]


@dataclass(frozen=True)
class WorkforceConfig:
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


class Workforce:
    """Staff that grows, shrinks, moves and heals."""

    def __init__(
        self,
        app: str,
        spark: SparkSession,
        layouts: Mapping[str, Layout],
        slices: int,
        storage: Storage,
        config: WorkforceConfig,
        version: PlanVersion,
    ) -> None:
        self.storage, self.config = storage, config
        self.cluster = Cluster(spark, config.zones)
        self.standbys = Standbys()
        self.wanted = self._wanted_before = config.workers
        self.migration: Migration | None = None
        self._tag = f"springtide-{app}"
        self._context = spark.sparkContext
        self._lock = threading.RLock()
        self._head: Manifest | None = None
        self._served: Plan | None = None
        """The plan under which the head was committed."""
        self._durable = True
        self._attempts = self._jobs = self._migrations = 0
        self._leaving: set[WorkerId] = set()
        self._stalled_at = Epoch(0)
        """The last epoch that stalled slices have seen."""
        self._stopped = threading.Event()
        workers = self.cluster.wait_for(config.workers, config.start_s)[: config.workers]
        self.cluster.warm_up([w.id for w in workers])
        self.ring = Ring.even(slices, workers)
        owners = self.ring.owners()
        share = assign(owners, self._ring_replicas(owners), workers)
        self.plan = Plan(version, slices, tuple(workers), dict.fromkeys(layouts, share))
        self.checkpointer = Checkpointer(
            Copying(spark, self.cluster, storage, slices), self.standbys, layouts,
            lambda: (self._head, self.plan), self._lock, config.checkpoint_s,
        )  # fmt: skip
        self.checkpointer.start()
        self._watcher = threading.Thread(target=self._watch, name="springtide-watcher", daemon=True)
        self._watcher.start()

    # What an epoch asks for

    @property
    def durable(self) -> bool:
        return self._durable

    def boundary(self, head: Manifest | None) -> Plan:
        with self._lock:
            self._head = head
            self._attempts = 0
            self._durable = self._served is None
            if not self._recover() and head is not None and self.migration is not None and self.migration.begun:
                self._advance(self.migration)
            if self.migration is None or not self.migration.under_way:
                self._settle()
            return self.plan

    def replan(self, error: Exception, head: Manifest | None) -> Plan:
        self._attempts += 1
        if self._attempts >= ATTEMPTS:
            raise error
        deadline = time.monotonic() + (0.0 if isinstance(error, Replan) else LOSS_S)
        while True:
            with self._lock:
                if self._recover():
                    return self.plan
            if time.monotonic() >= deadline:
                break
            time.sleep(WATCH_S)
        if not isinstance(error, Replan):
            raise error
        with self._lock:
            for worker, slices in error.missing.items():
                self.standbys.lacking(error.step, worker, slices)
                self._durable = True
            return self.plan

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        with self._lock:
            share = self.plan.operators[step]
            stalled = owed(state, share)
            if self._served is None or self._head is None:
                return stalled
            before = {SliceId(s): w for s, w in enumerate(self._served.operators[step].owners)}
            return (*self.standbys.takeovers(step, share, before, self._head.epoch, state), *stalled)

    def parts(self) -> Mapping[WorkerId, Parts]:
        with self._lock:
            return self.standbys.parts()

    def place(self, frame: DataFrame, workers: Sequence[WorkerId]) -> DataFrame:
        return self.cluster.place(frame, workers)

    def spread(self, frame: DataFrame) -> DataFrame:
        # A worker that has just come would take seconds for its first task: only those in the plan get any.
        return self.cluster.place(frame, [w.id for w in self.plan.workers])

    @contextmanager
    def job(self) -> Iterator[None]:
        self._context.addJobTag(self._tag)
        self._jobs += 1
        try:
            yield
        finally:
            self._jobs -= 1
            self._context.removeJobTag(self._tag)

    def committed(
        self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]
    ) -> tuple[str, ...]:
        with self._lock:
            gone = self.standbys.committed(manifest, parent, self.plan, self._served or self.plan, kept)
            self._head, self._served = manifest, self.plan
            return gone

    def pinned(self) -> set[str]:
        with self._lock:
            return self.standbys.pinned()

    def stop(self) -> None:
        self._stopped.set()
        self.checkpointer.stop()
        self._watcher.join()

    def close(self) -> None:
        """Spark, which was started for this app, has stopped: so do machines that were started for it."""
        self.cluster.stop()

    # What people ask for

    def scale(self, workers: int, strategy: str = DEFAULT, options: Options | None = None) -> Migration:
        """Grow or shrink to so many workers."""
        with self._lock:
            now = len(self._staying())
            if not 1 <= workers <= self.plan.slices:
                raise Refused(f"expected 1 to {self.plan.slices} workers (one slice each), got {workers}")
            migration = self._request(strategy, f"from {now} to {workers} workers")
            self._wanted_before, self.wanted = self.wanted, workers
            if workers == now:
                migration.end(DONE, "nothing to do")
            elif workers < now:
                leaving = self._staying()[workers:]
                self._begin_leaving(migration, leaving, options or Options())
            else:
                args = (migration, workers, options or Options())
                threading.Thread(target=self._grow, args=args, name="springtide-growing", daemon=True).start()
            return migration

    def move(
        self, operator: str, slices: frozenset[SliceId], to: WorkerId, strategy: str = DEFAULT,
        options: Options | None = None,
    ) -> Migration:  # fmt: skip
        """Move some slices of an operator to a worker."""
        with self._lock:
            share = self.plan.operators.get(operator)
            if share is None:
                raise Unknown(f"expected a keyed step of {sorted(self.plan.operators)}, got {operator!r}")
            if self.plan.worker(to) is None:
                raise Unknown(f"expected a worker of {[w.id for w in self.plan.workers]}, got {to!r}")
            beyond = sorted(s for s in slices if not 0 <= s < self.plan.slices)
            if beyond or not slices:
                raise Unknown(f"expected slices from 0 to {self.plan.slices - 1}, got {beyond or 'none'}")
            migration = self._request(strategy, f"{len(slices)} slices of {operator!r} to worker {to}")
            after = [to if s in slices else owner for s, owner in enumerate(share.owners)]
            self._begin(migration, moves(operator, share.owners, after), options or Options())
            return migration

    def cancel(self) -> Migration:
        """Give the migration under way up; slices that have moved go back."""
        with self._lock:
            migration = self.migration
            if migration is None or not migration.under_way:
                raise Refused("there is no migration under way")
            self._call_off(migration, "cancelled on request")
            return migration

    def backup_bytes(self) -> int:
        """Rows that workers keep for their neighbours, until a peer checkpoint covers them."""
        with self._lock:
            return self.standbys.backup_bytes()

    def state_of(self, worker: WorkerId) -> str:
        """Ready, draining, starting or lost."""
        migration = self.migration
        if worker in self._leaving or (migration and migration.under_way and worker in migration.leaving):
            return "draining"
        if self.plan.worker(worker) is None:
            return "starting"
        return "ready" if worker in self.cluster.alive() else "lost"

    # Migrations

    def _request(self, strategy: str, what: str) -> Migration:
        if strategy not in STRATEGIES:
            raise Refused(f"expected a strategy of {sorted(STRATEGIES)}, got {strategy!r}")
        if self.migration is not None and self.migration.under_way:
            raise Busy(f"migration {self.migration.id} ({self.migration.what}) is under way: wait for it, or cancel it")
        self._migrations += 1
        self.migration = Migration(self._migrations, strategy, what)
        return self.migration

    def _grow(self, migration: Migration, workers: int, options: Options) -> None:
        """Runs beside the epochs: workers come, get warm, and only then does anything move."""
        try:
            before = len(self._staying())
            self.cluster.ask(workers)
            there = self.cluster.wait_for(workers, self.config.start_s)
            known = {w.id for w in self.plan.workers}
            new = [w for w in there if w.id not in known][: workers - before]
            warm = self.cluster.warm_up([w.id for w in new])
            with self._lock:
                if migration.under_way and not migration.cancelling:
                    self._begin_joining(migration, self._still_new(new, warm), options)
                else:
                    self.cluster.dismiss(w.id for w in new[max(0, self.wanted - len(self._staying())) :])
        except NotEnoughWorkers as error:
            with self._lock:
                self.wanted = len(self._staying())
                self.cluster.ask(self.wanted)
                migration.end(FAILED, str(error))
        except Exception as error:
            with self._lock:
                self.wanted = len(self._staying())
                migration.end(FAILED, f"{type(error).__name__}: {error}")

    def _begin_joining(self, migration: Migration, new: list[Worker], options: Options) -> None:
        ring = self.ring
        for worker in new:
            ring = ring.joined(worker)
        migration.ring, migration.joining = ring.levelled(), frozenset(w.id for w in new)
        self._change(self._owners(), self._replicas(), (*self.plan.workers, *new))
        self._begin(migration, self._moves_to(migration.ring), options)

    def _begin_leaving(self, migration: Migration, leaving: list[Worker], options: Options) -> None:
        ring = self.ring
        for worker in leaving:
            ring = ring.left(worker.id, heir=ring.neighbour(worker.id))
        migration.ring, migration.leaving = ring.levelled(), frozenset(w.id for w in leaving)
        self._begin(migration, self._moves_to(migration.ring), options)

    def _moves_to(self, ring: Ring) -> tuple[Move, ...]:
        owners = ring.owners()
        return tuple(m for step, share in self.plan.operators.items() for m in moves(step, share.owners, owners))

    def _begin(self, migration: Migration, found: Sequence[Move], options: Options) -> None:
        migration.begin(found, STRATEGIES[migration.strategy](found, options) if found else (Flip(()),))

    def _advance(self, migration: Migration) -> None:
        """Take the steps that can be taken at this boundary."""
        while (step := migration.step) is not None:
            if isinstance(step, Stall):
                self._stall(step.moves)
            if isinstance(step, Supply) and not self._supplied(migration, step):
                return
            if isinstance(step, Flip):
                faults.fire("plan.flip")
                self._flip(step.moves)
                migration.flipped += step.moves
                migration.enter(MOVING)
                migration.go_on()
                if migration.step is not None:
                    return
                break
            if isinstance(step, Hold) and time.time() - migration.phases[MOVING] < step.seconds:
                return
            migration.go_on()
        self._finish(migration)

    def _supplied(self, migration: Migration, step: Supply) -> bool:
        """Have the targets all they need? The first time, they begin to stand by."""
        if not migration.entered:
            replicas = self._replicas()
            for move in step.moves:
                there = replicas[move.operator][move.slice]
                if move.target not in there:
                    replicas[move.operator][move.slice] = (*there, move.target)
            self._change(self._owners(), replicas, keep_stalled=True)
            migration.entered = True
            migration.phases["deadline"] = time.time() + self.config.ready_s
        wanted: dict[tuple[str, WorkerId], set[SliceId]] = {}
        for move in step.moves:
            wanted.setdefault((move.operator, move.target), set()).add(move.slice)
        if self._head is not None and all(
            slices <= self._able(operator, target, self._head.epoch) for (operator, target), slices in wanted.items()
        ):
            migration.bytes = sum(c.bytes for c in self.checkpointer.done if c.ended_at >= migration.began_at)
            return True
        if time.time() > migration.phases["deadline"]:
            self._call_off(migration, f"the targets were not ready in {self.config.ready_s:.0f} s", FAILED)
        else:
            self.checkpointer.hurry()
        return False

    def _stall(self, some: Sequence[Move]) -> None:
        """The rows of moving slices are kept for later, until their new owner serves."""
        stalled: dict[str, frozenset[SliceId]] = {}
        for move in some:
            stalled[move.operator] = stalled.get(move.operator, frozenset()) | {move.slice}
        assert self._head is not None, "steps are taken between epochs"
        self._stalled_at = self._head.epoch
        self.plan = self.plan.next(self._owners(), self._replicas(), stalled=stalled)

    def _able(self, operator: str, target: WorkerId, head: Epoch) -> frozenset[SliceId]:
        """The slices that a target could own from the next epoch on; of stalled ones, it needs a copy alone."""
        if self.plan.operators[operator].stalled:
            return self.standbys.holds(operator, target, self._stalled_at)
        return self.standbys.ready(operator, target, head)

    def _flip(self, some: Sequence[Move]) -> None:
        owners, replicas = self._owners(), self._replicas()
        for move in some:
            owners[move.operator][move.slice] = move.target
            there = tuple(w for w in replicas[move.operator][move.slice] if w != move.target)
            replicas[move.operator][move.slice] = (move.source, *there)
        self._change(owners, replicas)

    def _finish(self, migration: Migration) -> None:
        if migration.cancelling:
            self._leaving |= migration.joining
            migration.end(CANCELLED, migration.message)
            return
        if migration.ring is not None:
            self.ring = migration.ring
        self._leaving |= migration.leaving
        migration.end(DONE)

    def _call_off(self, migration: Migration, why: str, state: str = CANCELLED) -> None:
        """Nothing more moves; what has moved goes back, if the way is open."""
        migration.message = why
        if migration.joining or migration.leaving:
            self.wanted = len(self._staying()) - len(migration.joining)
        elif not migration.begun:  # Its workers have not come yet, and are not wanted any more.
            self.wanted = self._wanted_before
            self.cluster.ask(self.wanted)
        if migration.flipped:
            back = [Move(m.operator, m.slice, m.target, m.source) for m in migration.flipped]
            migration.cancelling, migration.at, migration.entered = True, 0, False
            migration.steps = (Supply(tuple(back)), Flip(tuple(back)))
            return
        self._leaving |= migration.joining
        self._change(self._owners(), self._replicas())
        migration.end(state, why)

    # Losses

    def _recover(self) -> bool:
        """Promote those who stand by for slices of lost workers; True if there were any."""
        alive = self.cluster.alive()
        lost = frozenset(w.id for w in self.plan.workers) - alive
        if not lost:
            return False
        survivors = [w for w in self.plan.workers if w.id in alive]
        if not survivors:
            survivors = self.cluster.wait_for(1, self.config.start_s)[:1]
            self.cluster.warm_up([w.id for w in survivors])
        if lost.issuperset(self.ring.workers):
            self.ring = Ring.even(self.plan.slices, survivors)
        else:
            for worker in sorted(lost & set(self.ring.workers)):
                self.ring = self.ring.left(worker, heir=self.ring.neighbour(worker))
            for stranded in survivors:  # It came for a migration that ends here, and is to be of use all the same.
                if stranded.id not in self.ring.workers and stranded.id not in self._leaving:
                    self.ring = self.ring.joined(stranded)
        self._leaving -= lost
        if self.migration is not None and self.migration.under_way and self.migration.begun:
            self.migration.end(FAILED, f"worker {', '.join(sorted(lost))} was lost")
        ids = {w.id for w in survivors}
        owners, replicas = self._owners(), self._replicas()
        ready = self._ready(ids)
        for step in owners:
            for number, owner in enumerate(owners[step]):
                left = tuple(w for w in replicas[step][number] if w in ids)
                if owner not in ids:
                    able = [w for w in left if number in ready[step, w]]
                    owners[step][number] = next(iter([*able, *left, self.ring.owner(number)]))
                replicas[step][number] = tuple(w for w in left if w != owners[step][number])
        self.standbys.lost(lost)
        self._change(owners, replicas, tuple(survivors))
        self._widen()
        self.checkpointer.hurry()
        return True

    def _ready(self, workers: set[WorkerId]) -> dict[tuple[str, WorkerId], frozenset[SliceId]]:
        if self._head is None:
            return {(step, w): frozenset() for step in self.plan.operators for w in workers}
        head = self._head.epoch
        return {(step, w): self.standbys.ready(step, w, head) for step in self.plan.operators for w in workers}

    def _watch(self) -> None:
        """Runs beside the epochs: a lost worker ends the job that waits for it; a new one is taken on.

        Tasks that miss their worker say so at once, and the job ends by itself. To cancel it would end the Python
        processes of the others, too, and they would have to start anew: that is for a job that does not end.
        """
        noticed = 0.0
        while not self._stopped.wait(WATCH_S):
            try:
                with self._lock:  # Else the plan may change between the two looks, and a sound job is cancelled.
                    lost = {w.id for w in self.plan.workers} - self.cluster.alive()
                    noticed = (noticed or time.monotonic()) if lost and self._jobs else 0.0
                    if noticed and time.monotonic() - noticed > GRACE_S:
                        self._context.cancelJobsWithTag(self._tag)
                if not lost:
                    self._heal()
            except Exception:
                if not self._stopped.is_set():
                    continue
                return

    def _heal(self) -> None:
        """After a loss: Spark's cluster manager sends a replacement; take it on."""
        with self._lock:
            short = self.wanted - len(self._staying())
            if short <= 0 or self._head is None or (self.migration is not None and self.migration.under_way):
                return
            known = {w.id for w in self.plan.workers}
        new = [w for w in self.cluster.workers() if w.id not in known][:short]
        warm = self.cluster.warm_up([w.id for w in new]) if new else frozenset()
        with self._lock:
            joining = self._still_new(new, warm)
            if joining and not (self.migration is not None and self.migration.under_way):
                migration = self._request(DEFAULT, f"in place of a lost worker: {', '.join(w.id for w in joining)}")
                self._begin_joining(migration, joining, Options())

    def _still_new(self, new: list[Worker], warm: frozenset[WorkerId]) -> list[Worker]:
        """Those who have become warm, and whom a recovery has not taken on meanwhile."""
        return [w for w in new if w.id in warm and self.plan.worker(w.id) is None]

    # Plans

    def _staying(self) -> list[Worker]:
        return [w for w in self.plan.workers if w.id not in self._leaving]

    def _owners(self) -> dict[str, list[WorkerId]]:
        return {step: list(share.owners) for step, share in self.plan.operators.items()}

    def _replicas(self) -> Replicas:
        none: list[tuple[WorkerId, ...]] = [()] * self.plan.slices
        return {step: list(share.replicas or none) for step, share in self.plan.operators.items()}

    def _ring_replicas(self, owners: Sequence[WorkerId]) -> list[tuple[WorkerId, ...]]:
        """By slice: who stands by, clockwise on the ring."""
        r = self.config.replicas
        found = []
        for number, owner in enumerate(owners):
            around = (self.ring.owner(number), *self.ring.replicas(number, r + 1))
            found.append(tuple(w for w in dict.fromkeys(around) if w != owner)[:r])
        return found

    def _desired(self) -> Replicas:
        return {step: self._ring_replicas(share.owners) for step, share in self.plan.operators.items()}

    def _change(
        self,
        owners: Mapping[str, Sequence[WorkerId]],
        replicas: Replicas,
        workers: tuple[Worker, ...] | None = None,
        *,
        keep_stalled: bool = False,
    ) -> None:
        """Another plan, unless it is the same; stalled slices are let go unless it says so."""
        stalled = {step: share.stalled for step, share in self.plan.operators.items()} if keep_stalled else None
        changed = self.plan.next(owners, replicas, workers, stalled)
        if (changed.workers, changed.operators) != (self.plan.workers, self.plan.operators):
            self.plan = changed

    def _widen(self) -> None:
        """Those who should stand by begin to; those who do already go on until the others are ready."""
        replicas, desired = self._replicas(), self._desired()
        for step in replicas:
            both = zip(desired[step], replicas[step], strict=True)
            replicas[step] = [tuple(dict.fromkeys((*wanted, *now))) for wanted, now in both]
        self._change(self._owners(), replicas)

    def _settle(self) -> None:
        """Replicas as the ring has them; workers that nobody needs any more are let go."""
        replicas, desired = self._replicas(), self._desired()
        if replicas != desired:
            self._widen()
            ready = self._ready({w.id for w in self.plan.workers})
            if all(s in ready[step, w] for step in desired for s, ws in enumerate(desired[step]) for w in ws):
                self._change(self._owners(), desired)
            else:
                self.checkpointer.hurry()
        idle = self._leaving - {w for share in self.plan.operators.values() for w in share.worker_of}
        if idle:
            self._leaving -= idle
            self._change(self._owners(), self._replicas(), tuple(w for w in self.plan.workers if w.id not in idle))
            self.standbys.lost(idle)
            self.cluster.dismiss(idle)
