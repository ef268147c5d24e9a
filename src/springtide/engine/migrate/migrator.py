"""Migrations as they are asked for: which are refused, who joins and who leaves, and what moves."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from springtide.engine.executors.cluster import Cluster, NotEnoughWorkers
from springtide.engine.migrate.growth import Growth
from springtide.engine.migrate.live_steps import LiveSteps
from springtide.engine.migrate.stop_and_swap import StopAndSwap
from springtide.engine.ownership.roster import Roster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.ids import SliceId, WorkerId
from springtide.logs import room_logger
from springtide.migration.errors import Busy, Refused, Unknown
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.migration.step import Flip, Options
from springtide.migration.strategies import LIVE, STOPPING, check, check_live
from springtide.plan.moves import Move, SliceLoad, moves
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.waits import let_go

log = room_logger(__name__)


class Migrator:
    """One migration at a time, from its request on; `steps` or `stopping` take it further at epoch boundaries."""

    def __init__(
        self,
        roster: SharedRoster,
        cluster: Cluster,
        growth: Growth,
        steps: LiveSteps,
        stopping: StopAndSwap,
        heat: Callable[[], SliceLoad] = dict,
    ) -> None:
        """`heat` tells which slices have the most rows."""
        self._shared, self._cluster, self._growth = roster, cluster, growth
        self._steps, self.stopping, self.heat = steps, stopping, heat
        self.current: Migration | None = None
        """The one under way, or else the last."""
        self._count = 0
        self._growing: threading.Thread | None = None

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
                self._growing = threading.Thread(
                    target=self._grow, args=(migration, workers, options), name="springtide-growing", daemon=True
                )
                self._growing.start()
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
            self._steps.call_off(migration, "cancelled on request")
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
        if self.current is not None and self.current.begun:
            self._steps.advance(self.current)

    @property
    def ripe(self) -> bool:
        """Whether `advance` could do something now."""
        return self.current is not None and self.current.begun and self._steps.ripe(self.current)

    def stop(self) -> None:
        """The app ends: workers that are to come for a growth are not waited for any more."""
        with self._shared.held():
            migration, growing = self.current, self._growing
            if migration is not None and migration.under_way and not migration.begun and not migration.stops:
                self._steps.call_off(migration, "the app has ended")
        if growing is not None:
            let_go(growing)

    def _request(self, strategy: str, what: str, options: Options) -> Migration:
        check(strategy, options)
        if self.current is not None and self.current.under_way:
            raise Busy(f"migration {self.current.id} ({self.current.what}) is under way: wait for it, or cancel it")
        self._count += 1
        self.current = Migration(self._count, strategy, what, last_begun=self.roster.begun)
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
        self._steps.begin(migration, found, LIVE[migration.strategy].steps(found, options) if found else (Flip(()),))

    def _moves_to(self, ring: Ring) -> tuple[Move, ...]:
        shares = self.roster.plan.operators.items()
        return tuple(m for step, share in shares for m in moves(step, share.owners, ring.owners()))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotEnoughWorkers) else f"{type(error).__name__}: {error}"
