"""Where new workers join a ring: half-way in the longest arc, among equals where the zones alternate best."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from springtide.ids import WorkerId
from springtide.plan.worker import Worker

Place = tuple[WorkerId, int]
"""A worker and its token."""


class NoRoom(Exception):
    """Every arc is a single slice."""

    def __init__(self, worker: WorkerId, after: WorkerId) -> None:
        super().__init__(worker, after)
        self.worker, self.after = worker, after


class Rooms:
    """The arcs of a ring by length, the longest first, apart for each pair of zones they lie between.

    Many workers that join one after another cost a little each, and not a look at the whole ring.
    """

    def __init__(self, slices: int, places: Sequence[tuple[WorkerId, int, str]]) -> None:
        self._slices = slices
        self._heaps: dict[tuple[str, str], list[tuple[int, int, WorkerId, int, str]]] = {}
        for (worker, token, zone), (_, end, there) in zip(places, (*places[1:], places[0]), strict=True):
            length = (end - token) % slices or slices
            self._heaps.setdefault((zone, there), []).append((-length, token, worker, end, there))
        for heap in self._heaps.values():
            heapify(heap)

    def join(self, workers: Sequence[Worker]) -> Iterator[Place]:
        """Where each worker goes; raises NoRoom when there is none left."""
        for worker in workers:
            here, there = min(self._heaps, key=lambda pair: self._rank(pair, worker.zone))
            shorter, token, after, end, _ = self._heaps[here, there][0]
            if shorter > -2:
                raise NoRoom(worker.id, after)
            heappop(self._heaps[here, there])
            if not self._heaps[here, there]:
                del self._heaps[here, there]
            kept = (1 - shorter) // 2
            half = (token + kept) % self._slices
            self._put((here, worker.zone), (-kept, token, after, half, worker.zone))
            self._put((worker.zone, there), (shorter + kept, half, worker.id, end, there))
            yield worker.id, half

    def _rank(self, pair: tuple[str, str], zone: str) -> tuple[int, int, int]:
        """The longest arc; among equals, where a newcomer of this zone meets its own zone least; then the first."""
        here, there = pair
        shorter, token, *_ = self._heaps[pair][0]
        return shorter, (zone == here) + (zone == there) - (here == there), token

    def _put(self, pair: tuple[str, str], arc: tuple[int, int, WorkerId, int, str]) -> None:
        heappush(self._heaps.setdefault(pair, []), arc)
