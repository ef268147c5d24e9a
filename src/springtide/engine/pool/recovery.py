"""Recovery: lost workers are noticed, their slices promoted, replacements taken on."""

import threading
import time

from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.tagged_jobs import TaggedJobs
from springtide.engine.migrate.migrator import Migrator
from springtide.engine.ownership.roster import Roster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.ids import WorkerId
from springtide.logs import room_logger
from springtide.migration.strategies import DEFAULT
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.waits import let_go

log = room_logger(__name__)

WATCH_S = 0.1
GRACE_S = 4.0
"""How long a job may go on after a worker was lost."""


class Recovery:
    """Heals the roster: at once when asked between epochs, and in a thread beside them."""

    def __init__(
        self,
        roster: SharedRoster,
        cluster: Cluster,
        migrator: Migrator,
        jobs: TaggedJobs,
        start_s: float,
    ) -> None:
        """A lost worker may hold up `jobs`."""
        self._roster, self._cluster, self.migrator, self.start_s = roster, cluster, migrator, start_s
        self._jobs = jobs
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="springtide-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        let_go(self._thread)

    def recover(self) -> bool:
        """Promote those who stand by for slices of lost workers; True if there were any.

        If all are lost, another one is waited for, while nobody holds the roster.
        """
        newcomers: list[Worker] = []
        while True:
            with self._roster.held() as roster:
                lost = roster.lost()
                if not lost:
                    return False
                survivors = [w for w in roster.plan.workers if w.id not in lost] or newcomers
                if survivors:
                    log.warning("lost workers %s; those who stand by take their slices", ", ".join(sorted(lost)))
                    self._replace(roster, lost, survivors)
                    return True
            newcomers = self._cluster.wait_for(1, self.start_s)[:1]
            self._cluster.warm_up([w.id for w in newcomers])

    def _replace(self, roster: Roster, lost: frozenset[WorkerId], survivors: list[Worker]) -> None:
        if lost.issuperset(roster.ring.workers):
            roster.ring = Ring.even(roster.plan.slices, survivors)
        else:
            for worker in sorted(lost & set(roster.ring.workers)):
                roster.ring = roster.ring.left(worker, heir=roster.ring.neighbour(worker))
            for stranded in survivors:  # It came for a migration that ends here, and is to be of use all the same.
                if stranded.id not in roster.ring.workers and stranded.id not in roster.leaving:
                    roster.ring = roster.ring.joined(stranded)
        roster.leaving -= lost
        self.migrator.lost(lost)
        _promote(roster, survivors)
        roster.standbys.lost(lost)
        roster.widen()
        roster.hurry()

    def _watch(self) -> None:
        """Runs beside the epochs: a lost worker ends the job that waits for it; a new one is taken on.

        Tasks that miss their worker say so at once, and the job ends by itself. To cancel it would end the Python
        processes of the others, too, and they would have to start anew: that is for a job that does not end.
        """
        noticed = 0.0
        while not self._stopped.wait(WATCH_S):
            try:
                with self._roster.held() as roster:  # Else the plan may change between two looks, and a sound job ends.
                    lost = frozenset() if self.migrator.swapping else roster.lost()
                    noticed = (noticed or time.monotonic()) if lost and self._jobs.count else 0.0
                    if noticed and time.monotonic() - noticed > GRACE_S:
                        self._jobs.cancel()
                self._cluster.sweep()
                if not lost:
                    self._heal()
            except Exception as error:
                # A worker that goes while it is looked at, or Spark that stops: the next look tells.
                log.debug("looking for lost workers failed: %s", error)

    def _heal(self) -> None:
        """After a loss: Spark's cluster manager sends a replacement; take it on."""
        with self._roster.held() as roster:
            short = roster.wanted - len(roster.staying())
            if short <= 0 or roster.head is None or self.migrator.busy:
                return
            known = {w.id for w in roster.plan.workers}
        new = [w for w in self._cluster.workers() if w.id not in known][:short]
        warm = self._cluster.warm_up([w.id for w in new]) if new else frozenset()
        with self._roster.held() as roster:
            joining = roster.still_new(new, warm)
            if joining and not self.migrator.busy:
                names = ", ".join(w.id for w in joining)
                self.migrator.take_on(joining, DEFAULT, f"in place of a lost worker: {names}")


def _promote(roster: Roster, survivors: list[Worker]) -> None:
    """A lost worker's slices go to those who stand by for them, to one that is ready if there is one."""
    ids = {w.id for w in survivors}
    owners, replicas, ready = roster.owners(), roster.standing_by(), roster.ready()
    for step in owners:
        for number, owner in enumerate(owners[step]):
            left = tuple(w for w in replicas[step][number] if w in ids)
            if owner not in ids:
                able = [w for w in left if number in ready[step, w]]
                owners[step][number] = next(iter([*able, *left, roster.ring.owner(number)]))
            replicas[step][number] = tuple(w for w in left if w != owners[step][number])
    roster.change(owners, replicas, tuple(survivors))
