"""Workers that come for a growth, and are given back if it is called off."""

import time
from collections.abc import Callable

from springtide.engine.roster import Roster
from springtide.ids import WorkerId
from springtide.logs import room_logger
from springtide.plan.worker import Worker

log = room_logger(__name__)


class Growth:
    """How many workers there should be, how many there were before the last change of that, and who."""

    def __init__(self, roster: Roster, start_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """New workers may take `start_s` to come."""
        self.roster, self.start_s, self._clock = roster, start_s, clock
        self._wanted_before = roster.wanted
        self._there_before = frozenset[WorkerId]()

    def want(self, workers: int) -> None:
        """From now on there should be `workers` of them. Nobody is asked yet."""
        roster = self.roster
        self._wanted_before, roster.wanted = roster.wanted, workers
        self._there_before = roster.cluster.alive()

    def bring(self, workers: int, wanted: Callable[[], bool]) -> list[Worker]:
        """Ask for workers until `workers` are there, and let them get warm; returns those that are new and of use.

        It takes its time, beside the epochs, and ends early if they are not wanted any more: `give_back` then. A worker
        that is lost meanwhile is no reason to give up: another one comes in its place.
        """
        roster = self.roster
        deadline = self._clock() + self.start_s
        roster.cluster.ask(workers)
        while True:
            there = roster.cluster.wait_for(workers, max(0.0, deadline - self._clock()), wanted)
            with roster.lock:
                known = {w.id for w in roster.plan.workers}
                missing = workers - len(roster.staying())
            new = [w for w in there if w.id not in known][:missing]
            try:
                warm = roster.cluster.warm_up([w.id for w in new], wanted)
            except Exception as error:
                if roster.cluster.alive().issuperset(w.id for w in there):
                    raise
                log.info("a worker was lost while new ones got warm, so they try again: %s", error)
                continue
            with roster.lock:
                return roster.still_new(new, warm)

    def undo(self) -> None:
        """As many should be there as before."""
        self.roster.wanted = self._wanted_before

    def give_back(self) -> None:
        """No more are asked for than are wanted; who came since, or is still to come, goes."""
        self.roster.cluster.give_back(self.roster.wanted, self._there_before)
