"""Migrations that stop the app: their phases, carried out in the thread of the epochs."""

import threading
from collections.abc import Callable

from springtide import faults
from springtide.blocks.manifest import States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.cluster import Cluster
from springtide.engine.ownership.roster import ring_replicas
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.ownership.standby import Standbys
from springtide.migration.phase import Commit, Init, Point, Prepare, Swap
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.plan.plan import Plan
from springtide.plan.ring import Ring

Restore = Callable[[Init, States, Plan, float], bool]
"""Gives new workers their state. The last argument is the time for it, in seconds; True if all have theirs by then."""
AGAIN_S = 0.05
"""Between two tries to cancel what runs: a job may be about to start."""


class StopAndSwap:
    """At most one migration that waits for the app to stop."""

    def __init__(
        self,
        roster: SharedRoster,
        cluster: Cluster,
        restore: Restore,
        cancel_jobs: Callable[[], None],
        start_s: float,
    ) -> None:
        self._roster, self._cluster, self.start_s = roster, cluster, start_s
        self._fetch, self._cancel_jobs = restore, cancel_jobs
        self._waiting: Migration | None = None
        self._ended = threading.Event()

    def stop(self) -> None:
        """The app ends: nothing is cancelled any more."""
        self._ended.set()

    def ask(self, migration: Migration) -> None:
        """Let the app stop for a migration, as soon as it is where that wants it."""
        migration.enter(MigrationState.PREPARE)
        self._waiting = migration
        if _stops_at(migration) is Point.ANYWHERE:
            threading.Thread(target=self._kill, args=(migration,), name="springtide-killing", daemon=True).start()

    def due(self, here: Point) -> bool:
        """Whether the app is to stop, now that it is here."""
        waiting = self._waiting
        return waiting is not None and waiting.state == MigrationState.PREPARE and _stops_at(waiting) <= here

    def carry_out(self, keeping: StopState) -> Plan:
        """All that comes after the app has stopped; it goes on under the plan that is returned."""
        migration, self._waiting = self._waiting, None
        assert migration is not None, "a migration is due"
        states: States | None = None
        if not self._begun(migration):
            return self._roster.plan
        for phase in migration.stops:
            if isinstance(phase, Commit):
                faults.fire("stop.commit")
                states = keeping.store()
                if states is None:
                    migration.end(
                        MigrationState.FAILED, "the state could not be made durable; the app goes on as it was"
                    )
                    with self._roster.held() as roster:
                        roster.wanted = len(roster.staying())
                        return roster.plan
            elif isinstance(phase, Swap):
                if migration.state != MigrationState.SWAP:
                    migration.enter(MigrationState.SWAP)
                faults.fire("stop.swap")
                self._swap(migration)
            elif isinstance(phase, Init):
                migration.enter(MigrationState.INIT)
                faults.fire("stop.init")
                self._restore(migration, phase, keeping.last() if states is None else states)
        return self._roster.plan

    def _begun(self, migration: Migration) -> bool:
        """Enter the first phase, from which there is no way back; False if it was cancelled just before."""
        stores = any(isinstance(phase, Commit) for phase in migration.stops)
        with self._roster.held():
            if not migration.under_way:
                return False
            migration.enter(MigrationState.COMMIT if stores else MigrationState.SWAP)
            return True

    def _kill(self, migration: Migration) -> None:
        """Cancel what runs until the app has stopped for the migration, or ends."""
        while migration.under_way and migration.state == MigrationState.PREPARE:
            self._cancel_jobs()
            if self._ended.wait(AGAIN_S):
                return

    def _swap(self, migration: Migration) -> None:
        new = self._cluster.replace(migration.workers, self.start_s)
        migration.swapped = len(new)
        with self._roster.held() as roster:
            roster.ring = Ring.even(roster.plan.slices, new)
            owners = roster.ring.owners()
            replicas = ring_replicas(roster.ring, owners, roster.replicas)
            roster.standbys, roster.leaving = Standbys(), set()
            roster.served = None
            steps = list(roster.plan.operators)
            roster.change(dict.fromkeys(steps, owners), dict.fromkeys(steps, replicas), tuple(new))

    def _restore(self, migration: Migration, init: Init, states: States) -> None:
        restored = self._fetch(init, states, self._roster.plan, self.start_s)
        asked, came = migration.workers, migration.swapped
        if came < asked:
            migration.end(
                MigrationState.FAILED,
                f"of {asked} workers {came} came in {self.start_s:.0f} s; the app goes on with those",
            )
        elif not restored:
            migration.end(
                MigrationState.DONE, "not every worker has its state yet: some will fetch it in their first epoch"
            )
        else:
            migration.end(MigrationState.DONE)


def _stops_at(migration: Migration) -> Point:
    return next(phase.stop for phase in migration.stops if isinstance(phase, Prepare))
