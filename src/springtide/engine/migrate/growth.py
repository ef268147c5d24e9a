"""Workers that come for a growth, and are given back if it is called off."""

import time
from collections.abc import Callable

from springtide.engine.executors.cluster import Cluster
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.ids import WorkerId
from springtide.logs import room_logger
from springtide.plan.worker import Worker

log = room_logger(__name__)


class Growth:
    """How many workers there should be, how many there were before the last change of that, and who."""

    def __init__(
        self, roster: SharedRoster, cluster: Cluster, start_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """New workers may take `start_s` to come."""
        self._roster, self._cluster, self.start_s, self._clock = roster, cluster, start_s, clock
        with roster.held() as held:
            self._wanted_before = held.wanted
        self._there_before = frozenset[WorkerId]()

    def want(self, workers: int) -> None:
        """From now on there should be `workers` of them. Nobody is asked yet."""
        with self._roster.held() as roster:
            self._wanted_before, roster.wanted = roster.wanted, workers
            self._there_before = self._cluster.alive()

    def bring(self, workers: int, wanted: Callable[[], bool]) -> list[Worker]:
        """Ask for workers until `workers` are there, and let them get warm; returns those that are new and of use.

        It takes its time, beside the epochs, and ends early if they are not wanted any more: `give_back` then. A worker
        that is lost meanwhile is no reason to give up: another one comes in its place.
        """
        deadline = self._clock() + self.start_s
        self._cluster.ask(workers)
        while True:
            there = self._cluster.wait_for(workers, max(0.0, deadline - self._clock()), wanted)
            with self._roster.held() as roster:
                known = {w.id for w in roster.plan.workers}
                missing = workers - len(roster.staying())
            new = [w for w in there if w.id not in known][:missing]
            try:
                warm = self._cluster.warm_up([w.id for w in new], wanted)
            except Exception as error:
                if self._cluster.alive().issuperset(w.id for w in there):
                    raise
                log.info("a worker was lost while new ones got warm, so they try again: %s", error)
                continue
            with self._roster.held() as roster:
                return roster.still_new(new, warm)

    def undo(self) -> None:
        """As many should be there as before."""
        with self._roster.held() as roster:
            roster.wanted = self._wanted_before

    def give_back(self) -> None:
        """No more are asked for than are wanted; who came since, or is still to come, goes. It may take its time."""
        with self._roster.held() as roster:
            wanted, before = roster.wanted, self._there_before
        self._cluster.give_back(wanted, before)
