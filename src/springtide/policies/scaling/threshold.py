"""Thresholds, after Floe: an overloaded worker leans on its neighbour, and a new one comes if nobody has room.

A snapshot's workers are in the order of the ring: the clockwise neighbour of a worker is the next one, and that
of the last one is the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.ids import SliceId
from springtide.metrics.snapshot import MeasuredWorker, Slice, Snapshot
from springtide.plan.ring import Load, Thresholds
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.load import busy
from springtide.policies.past import Past
from springtide.policies.words import plural


@dataclass(frozen=True)
class Threshold:
    """Overloaded is a worker at or above both high marks, light one at or below both low marks."""

    queue_high: float = 10_000
    """Rows that wait."""
    queue_low: float = 1_000
    cpu_high: float = 0.8
    """The share of its processors in use, 0 to 1."""
    cpu_low: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.queue_low < self.queue_high:
            raise BadValue(f"queue_low: expected 0 or more and less than {self.queue_high}, got {self.queue_low}")
        if not 0 <= self.cpu_low < self.cpu_high <= 1:
            raise BadValue(f"cpu_low: expected 0 to cpu_high, that up to 1; got {self.cpu_low} and {self.cpu_high}")

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        overloaded = [w for w in snapshot.workers if self._overloaded(w)]
        if overloaded:
            return self._relieved(snapshot, max(overloaded, key=lambda w: (w.queue_rows, w.cpu)))
        return self._shrunk(snapshot.workers)

    def _relieved(self, snapshot: Snapshot, hot: MeasuredWorker) -> Decision:
        """Ask the neighbour, or let it ask its own neighbour first, and so on around the ring."""
        around = _clockwise(snapshot.workers, hot)
        for giver, taker in zip([hot, *around], around, strict=False):
            if self._light(taker):
                shared = _half(snapshot.slices, giver, taker)
                if shared:
                    return self._shared(hot, giver, taker, shared)
        return Scale(len(snapshot.workers) + 1, f"{busy(hot)}, and no other worker has room")

    def _shared(
        self, hot: MeasuredWorker, giver: MeasuredWorker, taker: MeasuredWorker, shared: Sequence[Slice]
    ) -> Rebalance:
        why = f"{busy(hot)}; {busy(taker)} and takes {plural(len(shared), 'slice')}"
        if giver is not hot:
            why += f" of {giver.id} so that this one can help"
        numbers = frozenset(s.number for s in shared)
        return Rebalance(shared[0].operator, numbers, giver.id, taker.id, why)

    def _shrunk(self, workers: Sequence[MeasuredWorker]) -> Decision:
        for worker, neighbour in zip(workers, (*workers[1:], *workers[:1]), strict=True):
            if worker is not neighbour and self._light(worker) and self._light(neighbour):
                why = f"{busy(worker)}; {busy(neighbour)} and can take over from it"
                return Scale(len(workers) - 1, why)
        return Hold("no worker is overloaded, and no two neighbours are light")

    def _overloaded(self, worker: MeasuredWorker) -> bool:
        return worker.queue_rows >= self.queue_high and worker.cpu >= self.cpu_high

    def _light(self, worker: MeasuredWorker) -> bool:
        return Thresholds(self.queue_low, self.cpu_low).admit(Load(worker.queue_rows, worker.cpu))


def _clockwise(workers: Sequence[MeasuredWorker], start: MeasuredWorker) -> list[MeasuredWorker]:
    at = workers.index(start)
    return [*workers[at + 1 :], *workers[:at]]


def _half(slices: Sequence[Slice], giver: MeasuredWorker, taker: MeasuredWorker) -> list[Slice]:
    """The half of a worker's slices that is nearest to the other one, of the operator that is busiest there.

    None if no operator has two slices there.
    """
    owned: dict[str, list[Slice]] = {}
    for found in slices:
        if found.owner == giver.id:
            owned.setdefault(found.operator, []).append(found)
    several = [some for some in owned.values() if len(some) > 1]
    if not several:
        return []
    mine = max(several, key=lambda some: (sum(s.load_s for s in some), sum(s.rate for s in some)))
    around = [s for s in slices if s.operator == mine[0].operator]
    theirs = [s.number for s in around if s.owner == taker.id]
    return sorted(mine, key=lambda s: _distance(s.number, theirs, len(around)))[: len(mine) // 2]


def _distance(number: SliceId, theirs: Sequence[SliceId], around: int) -> tuple[int, int]:
    """Clockwise to the nearest of these slices; to a worker without any, the last slice is the nearest."""
    return min(((other - number) % around for other in theirs), default=0), -number
