"""The workers that have come, and the last of those that have gone: a cluster may send new ones for weeks."""

import threading
from collections.abc import Iterable, Sequence, Set

from springtide.ids import WorkerId
from springtide.plan.worker import Worker

REMEMBERED = 32
"""Departed workers that are remembered: others may have to clear up after them."""


class KnownWorkers:
    """Who is here, where, in which zone, and who is warm. Several threads look and learn at once.

    What is there is replaced, with the lock held, and never changed: whoever reads it needs no lock.
    """

    def __init__(self, zones: Sequence[str] = ()) -> None:
        """Fault zones are given to workers in turn."""
        self._zones = tuple(zones)
        self._came = 0
        self._known: dict[WorkerId, Worker] = {}
        self._warm = frozenset[WorkerId]()
        self._changing = threading.Lock()

    def get(self, worker: WorkerId) -> Worker | None:
        return self._known.get(worker)

    def unknown(self, workers: Set[WorkerId]) -> bool:
        """Whether somebody is among them who was not here before."""
        return not workers <= self._known.keys()

    def learn(self, executor: str, host: str, slots: int) -> None:
        """Somebody is here; one slot is left to copies, if there are several."""
        worker = WorkerId(executor)
        with self._changing:
            if worker in self._known or executor == "driver":
                return
            zone = self._zones[self._came % len(self._zones)] if self._zones else ""
            self._came += 1
            self._known = {**self._known, worker: Worker(worker, host, max(1, slots - 1), zone)}

    def forget(self, alive: Set[WorkerId]) -> None:
        """Remember only the last to go. Who came after `alive` was asked for stays: no other is as new."""
        with self._changing:
            gone = self._gone(alive)[:-REMEMBERED]
            if gone:
                self._known = {worker: known for worker, known in self._known.items() if worker not in gone}
                self._warm -= frozenset(gone)

    def warmed(self, workers: Iterable[WorkerId]) -> None:
        """They have done all that an epoch does."""
        with self._changing:
            self._warm |= frozenset(workers)

    def warm(self, workers: Iterable[WorkerId]) -> frozenset[WorkerId]:
        """Those of them who are warm."""
        return self._warm.intersection(workers)

    def among(self, alive: Set[WorkerId]) -> list[Worker]:
        """Those of them who are known, in the order in which they came."""
        return [w for w in sorted(self._known.values(), key=_age) if w.id in alive]

    def departed(self, alive: Set[WorkerId]) -> tuple[WorkerId, ...]:
        """The last to have gone, of those who have ever been here."""
        return tuple(self._gone(alive)[-REMEMBERED:])

    def _gone(self, alive: Set[WorkerId]) -> list[WorkerId]:
        return [w.id for w in sorted(self._known.values(), key=_age) if w.id not in alive]


def _age(worker: Worker) -> tuple[int, str]:
    return (int(worker.id) if worker.id.isdigit() else 0, worker.id)
