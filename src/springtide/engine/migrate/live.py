"""Migrations: from a request to its steps, which are taken at epoch boundaries."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from springtide import faults
from springtide.engine.executors.cluster import Cluster, NotEnoughWorkers
from springtide.engine.migrate.growth import Growth
from springtide.engine.migrate.stop_and_swap import StopAndSwap
from springtide.engine.ownership.roster import Roster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.ids import Epoch, SliceId, WorkerId
from springtide.logs import room_logger
from springtide.migration.errors import Busy, Refused, Unknown
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.migration.step import Flip, KeepReplicas, Options, Stall, Supply
from springtide.migration.strategies import LIVE, STOPPING, check, check_live
from springtide.plan.moves import Move, SliceLoad, moves
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker

log = room_logger(__name__)


class Migrator:
    """One migration at a time."""

    def __init__(
        self,
        roster: SharedRoster,
        cluster: Cluster,
        stopping: StopAndSwap,
        copied_bytes: Callable[[], int],
        heat: Callable[[], SliceLoad] = dict,
        *,
        start_s: float,
        ready_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`copied_bytes` tells what peer checkpoints have copied so far; `clock` is one that never jumps."""
        self._shared, self._cluster, self.stopping = roster, cluster, stopping
        self.copied_bytes, self.heat = copied_bytes, heat
        self.ready_s, self._clock = ready_s, clock
        self.current: Migration | None = None
        """The one under way, or else the last."""
        self._count = 0
        self._growth = Growth(roster, cluster, start_s)
        self._stalled_at = Epoch(0)
        """The last epoch that stalled slices have seen."""

    @property
    def roster(self) -> Roster:
        """For what is done with the roster held."""
        return self._shared.mine

    @property
    def busy(self) -> bool:
        return self.current is not None and self.current.under_way

    @property
    def swapping(self) -> bool:
        """Whether the workers of the plan go, as they should."""
        return (
            self.busy and self.current is not None and self.current.state in (MigrationState.SWAP, MigrationState.INIT)
        )

    def scale(self, workers: int, strategy: str, options: Options) -> Migration:
        """Grow or shrink to this number of workers; returns at once. Refused if that cannot be."""
        with self._shared.held() as roster:
            now, most = len(roster.staying()), roster.plan.slices
        if not 1 <= workers <= most:
            raise Refused(f"expected 1 to {most} workers (one slice each), got {workers}")
        if workers > now:  # Without the lock, which epochs wait for: a cluster manager may be slow to answer.
            self._cluster.check(workers, force=options.force)
        with self._shared.held() as roster:
            now = len(roster.staying())
            if strategy in STOPPING and not self._cluster.alone:
                raise Refused(f"{strategy!r} replaces all workers, and other apps work on them: use {sorted(LIVE)}")
            migration = self._request(strategy, f"from {now} to {workers} workers", options)
            self._growth.want(workers)
            if strategy in STOPPING:
                migration.stops, migration.workers = STOPPING[strategy].phases, workers
                self.stopping.ask(migration)
            elif workers == now:
                migration.end(MigrationState.DONE, "nothing to do")
            elif workers < now:
                self._begin_leaving(migration, roster.staying()[workers:], options)
            else:
                args = (migration, workers, options)
                threading.Thread(target=self._grow, args=args, name="springtide-growing", daemon=True).start()
            return migration

    def move(
        self, operator: str, slices: frozenset[SliceId], to: WorkerId, strategy: str, options: Options
    ) -> Migration:
        """Move some slices of an operator to a worker; returns at once."""
        with self._shared.held() as roster:
            plan = roster.plan
            share = plan.operators.get(operator)
            if share is None:
                raise Unknown(f"expected a keyed step of {sorted(plan.operators)}, got {operator!r}")
            if plan.worker(to) is None:
                raise Unknown(f"expected a worker of {[w.id for w in plan.workers]}, got {to!r}")
            beyond = sorted(s for s in slices if not 0 <= s < plan.slices)
            if beyond or not slices:
                raise Unknown(f"expected slices from 0 to {plan.slices - 1}, got {beyond or 'none'}")
            check_live(strategy, options)
            migration = self._request(strategy, f"{len(slices)} slices of {operator!r} to worker {to}", options)
            after = [to if s in slices else owner for s, owner in enumerate(share.owners)]
            self._begin(migration, moves(operator, share.owners, after), options)
            return migration

    def take_on(self, workers: list[Worker], strategy: str, what: str) -> Migration:
        """Give workers that have come by themselves their share."""
        with self._shared.held():
            migration = self._request(strategy, what, Options())
            self._begin_joining(migration, workers, Options())
            return migration

    def cancel(self) -> Migration:
        """Give the migration under way up; slices that have moved go back."""
        with self._shared.held():
            migration = self.current
            if migration is None or not migration.under_way:
                raise Refused("there is no migration under way")
            if migration.stops and migration.state != MigrationState.PREPARE:
                raise Refused("the app has stopped to swap its workers, and cannot go back: wait for it")
            awaited = not migration.begun and not migration.stops
            self._call_off(migration, "cancelled on request")
        if awaited:  # Its workers have not come yet, and are not wanted any more.
            self._growth.give_back()
        return migration

    def state_of(self, worker: WorkerId) -> str:
        """Ready, draining, starting or lost."""
        with self._shared.held() as roster:
            going = self.current.leaving if self.current is not None and self.busy else frozenset()
            if worker in roster.leaving | going:
                return "draining"
            if roster.plan.worker(worker) is None:
                return "starting"
            return "lost" if worker in roster.lost() else "ready"

    def lost(self, workers: frozenset[WorkerId]) -> None:
        """Workers are gone: what has begun to move can't go on as planned."""
        if self.current is not None and self.current.begun:
            self.current.end(MigrationState.FAILED, f"worker {', '.join(sorted(workers))} was lost")

    def advance(self) -> None:
        """Take the steps that can be taken at this boundary."""
        migration = self.current
        if migration is None or not migration.begun:
            return
        while (step := migration.step) is not None:
            if isinstance(step, Stall):
                self._stall(step.moves)
            if isinstance(step, Supply) and not self._supplied(migration, step):
                return
            if isinstance(step, Flip):
                faults.fire("plan.flip")
                self._flip(step.moves)
                migration.flipped += step.moves
                migration.enter(MigrationState.MOVING)
                migration.flipped_s = self._clock()
                migration.go_on()
                if migration.step is not None:
                    return
                break
            if isinstance(step, KeepReplicas) and self._clock() - migration.flipped_s < step.seconds:
                return
            migration.go_on()
        self._finish(migration)

    @property
    def ripe(self) -> bool:
        """Whether `advance` could do something now."""
        migration = self.current
        if migration is None or not migration.begun:
            return False
        step = migration.step
        if isinstance(step, Supply) and migration.entered and self.roster.head is not None:
            return self._there(step) or self._clock() > migration.deadline_s
        if isinstance(step, KeepReplicas):
            return self._clock() - migration.flipped_s >= step.seconds
        return True

    def _request(self, strategy: str, what: str, options: Options) -> Migration:
        check(strategy, options)
        if self.current is not None and self.current.under_way:
            raise Busy(f"migration {self.current.id} ({self.current.what}) is under way: wait for it, or cancel it")
        self._count += 1
        copied = self.copied_bytes()
        self.current = Migration(self._count, strategy, what, last_begun=self.roster.begun, copied_before=copied)
        return self.current

    def _grow(self, migration: Migration, workers: int, options: Options) -> None:
        """Runs beside the epochs: workers come, get warm, and only then does anything move."""
        growth, failure = self._growth, ""
        try:
            new = growth.bring(workers, lambda: migration.under_way)
            with self._shared.held():
                if migration.under_way:
                    self._begin_joining(migration, new, options)
                    return
        except Exception as error:
            failure = _reason(error)
            log.info("migration %s: its workers could not be taken on: %s", migration.id, failure)
        with self._shared.held():
            if migration.under_way:
                growth.undo()
                migration.end(MigrationState.FAILED, failure)
        try:
            growth.give_back()  # Also if it was called off, which may have been just before it asked.
        except Exception as error:
            # Spark has ended, or its cluster manager is away: who comes late goes with the next look at the workers.
            log.info("migration %s: its workers could not be given back: %s", migration.id, error)

    def _begin_joining(self, migration: Migration, new: list[Worker], options: Options) -> None:
        roster = self.roster
        migration.ring, migration.joining = roster.ring.joined_by(new).levelled(), frozenset(w.id for w in new)
        roster.change(roster.owners(), roster.standing_by(), (*roster.plan.workers, *new))
        self._begin(migration, self._moves_to(migration.ring), options)

    def _begin_leaving(self, migration: Migration, leaving: list[Worker], options: Options) -> None:
        migration.leaving = frozenset(w.id for w in leaving)
        migration.ring = self.roster.ring.without(migration.leaving).levelled()
        self._begin(migration, self._moves_to(migration.ring), options)

    def _begin(self, migration: Migration, found: Sequence[Move], options: Options) -> None:
        if options.hottest_first:
            options = replace(options, heat=self.heat())
        migration.begin(found, LIVE[migration.strategy].steps(found, options) if found else (Flip(()),))

    def _moves_to(self, ring: Ring) -> tuple[Move, ...]:
        shares = self.roster.plan.operators.items()
        return tuple(m for step, share in shares for m in moves(step, share.owners, ring.owners()))

    def _supplied(self, migration: Migration, step: Supply) -> bool:
        """Whether the targets have all they need. The first time, they begin to stand by."""
        roster = self.roster
        if not migration.entered:
            replicas = roster.standing_by()
            for move in step.moves:
                there = replicas[move.operator][move.slice]
                if move.target not in there:
                    replicas[move.operator][move.slice] = (*there, move.target)
            roster.change(roster.owners(), replicas, keep_stalled=True)
            migration.entered = True
            migration.deadline_s = self._clock() + self.ready_s
        if self._there(step):
            migration.bytes = self.copied_bytes() - migration.copied_before
            return True
        if self._clock() > migration.deadline_s:
            self._call_off(migration, f"the targets were not ready in {self.ready_s:.0f} s", MigrationState.FAILED)
        else:
            roster.hurry()
        return False

    def _there(self, step: Supply) -> bool:
        """Whether the targets have all they need."""
        wanted: dict[tuple[str, WorkerId], set[SliceId]] = {}
        for move in step.moves:
            wanted.setdefault((move.operator, move.target), set()).add(move.slice)
        return all(slices <= self._able(operator, target) for (operator, target), slices in wanted.items())

    def _able(self, operator: str, target: WorkerId) -> frozenset[SliceId]:
        """The slices that a target could own from the next epoch on; of stalled ones, it needs a copy alone."""
        roster = self.roster
        assert roster.head is not None, "steps are taken between epochs"
        if roster.plan.operators[operator].stalled:
            return roster.standbys.holds(operator, target, self._stalled_at)
        return roster.standbys.ready(operator, target, roster.head.epoch)

    def _stall(self, some: Sequence[Move]) -> None:
        """The rows of moving slices are kept for later, until their new owner serves."""
        roster = self.roster
        assert roster.head is not None, "steps are taken between epochs"
        stalled: dict[str, frozenset[SliceId]] = {}
        for move in some:
            stalled[move.operator] = stalled.get(move.operator, frozenset()) | {move.slice}
        self._stalled_at = roster.head.epoch
        roster.plan = roster.plan.next(roster.owners(), roster.standing_by(), stalled=stalled)

    def _flip(self, some: Sequence[Move]) -> None:
        """The targets own the slices; the former owners stand by."""
        owners, replicas = self.roster.owners(), self.roster.standing_by()
        for move in some:
            owners[move.operator][move.slice] = move.target
            there = tuple(w for w in replicas[move.operator][move.slice] if w != move.target)
            replicas[move.operator][move.slice] = (move.source, *there)
        self.roster.change(owners, replicas)

    def _finish(self, migration: Migration) -> None:
        if migration.cancelling:
            self.roster.leaving |= migration.joining
            migration.end(MigrationState.CANCELLED, migration.message)
            return
        if migration.ring is not None:
            self.roster.ring = migration.ring
        self.roster.leaving |= migration.leaving
        migration.end(MigrationState.DONE)

    def _call_off(self, migration: Migration, why: str, state: MigrationState = MigrationState.CANCELLED) -> None:
        """Nothing more moves; what has moved goes back, if the way is open."""
        roster = self.roster
        migration.message = why
        if migration.stops:
            self._growth.undo()
            migration.end(state, why)
            return
        if migration.joining or migration.leaving:
            roster.wanted = len(roster.staying()) - len(migration.joining)
        elif not migration.begun:
            self._growth.undo()
        if migration.flipped:
            back = tuple(Move(m.operator, m.slice, m.target, m.source) for m in migration.flipped)
            migration.cancelling, migration.at, migration.entered = True, 0, False
            migration.steps = (Supply(back), Flip(back))
            return
        roster.leaving |= migration.joining
        roster.change(roster.owners(), roster.standing_by())
        migration.end(state, why)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotEnoughWorkers) else f"{type(error).__name__}: {error}"
