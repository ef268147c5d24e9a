"""Online task deployment: one slice at a time moves to where it is better off.

A worker's load is high if many rows wait or its processors are busy, low if neither is so.

| high | low | what is done |
| --- | --- | --- |
| some | some | a slice of the busiest worker goes to one with low load: load balancing |
| some | none | a warning: there are too few workers |
| none | some | the slice that saves most traffic between workers goes to one with low load |
| none | none | nothing |

What a move is worth is the traffic that it makes local less the traffic that it makes remote, in bytes a second.
Only what a slice receives counts: what it sends on is not told by slice.
"""

from dataclasses import dataclass, field
from functools import cached_property

from springtide.errors import BadValue
from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import MeasuredWorker, Slice, Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance
from springtide.policies.load import busy
from springtide.policies.past import Past, enacted
from springtide.policies.words import count, plural

Key = tuple[str, SliceId]


@dataclass(frozen=True)
class Pair:
    """A slice and the worker that it could go to."""

    slice: Slice
    target: WorkerId
    gain: float
    """Bytes a second that are local instead of remote."""
    evens: float = 0.0
    """The load of the busier one of the two workers after the move, below zero: the higher, the more even."""

    @property
    def rank(self) -> tuple[float, float, str, SliceId, WorkerId]:
        """The best is the highest; names decide among equals, so that the order of a snapshot does not matter."""
        return self.gain, self.evens, self.slice.operator, self.slice.number, self.target


@dataclass(frozen=True)
class Otd:
    """One best-fit pair of a slice and a worker each time."""

    queue_high: float = 10_000
    """Rows that wait."""
    queue_low: float = 1_000
    cpu_high: float = 0.8
    """The share of its processors in use, 0 to 1."""
    cpu_low: float = 0.5
    gain: float = 1e6
    """Bytes a second that a move has to make local if no worker's load is high."""
    slack: float = 0.0
    """How much busier the new owner of a slice may be than the old one was, a slot, if no worker's load is high."""
    return_s: float = 600.0
    """The time in which a slice does not go back to a worker that it left."""

    def __post_init__(self) -> None:
        if not 0 <= self.queue_low <= self.queue_high:
            raise BadValue(f"queue_low: expected 0 to {self.queue_high} rows, got {self.queue_low}")
        if not 0 <= self.cpu_low <= self.cpu_high <= 1:
            raise BadValue(f"cpu_low: expected 0 to cpu_high, that up to 1; got {self.cpu_low} and {self.cpu_high}")
        if not self.gain >= 0:
            raise BadValue(f"gain: expected 0 bytes a second or more, got {self.gain}")

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        high = [w for w in snapshot.workers if self._high(w)]
        low = [w for w in snapshot.workers if self._low(w)]
        deployment = _Deployment(snapshot, frozenset(w.id for w in low), _left(snapshot.at - self.return_s, past))
        if high and low:
            return self._balanced(deployment, max(high, key=self._pressure), plural(len(low), "worker"))
        if high:
            named = ", ".join(busy(w) for w in sorted(high, key=self._pressure, reverse=True)[:3])
            return Hold(f"no worker has room: {named}; more workers are needed", warning=True)
        if low:
            return self._localised(deployment)
        return Hold("no worker's load is high, and none is low")

    def _balanced(self, deployment: "_Deployment", hot: MeasuredWorker, room: str) -> Decision:
        pairs = deployment.pairs_from(hot.id)
        if not pairs:
            return Hold(f"{busy(hot)}; none of its slices fits on the {room} with room", warning=True)
        best = max(pairs, key=lambda pair: pair.rank)
        return _move(best, f"{busy(hot)}; {best.target} has room ({_change(best.gain)})")

    def _localised(self, deployment: "_Deployment") -> Decision:
        best = deployment.most_local(self.gain, self.slack)
        if best is None:
            return Hold(f"no worker's load is high, and no move saves more than {count(self.gain)} bytes/s of traffic")
        return _move(best, f"no worker's load is high; {_change(best.gain)}")

    def _high(self, worker: MeasuredWorker) -> bool:
        return worker.queue_rows > self.queue_high or worker.cpu > self.cpu_high

    def _low(self, worker: MeasuredWorker) -> bool:
        return worker.queue_rows <= self.queue_low and worker.cpu <= self.cpu_low

    def _pressure(self, worker: MeasuredWorker) -> tuple[float, float]:
        """How far above the high marks; the further mark counts first."""
        queue = worker.queue_rows / self.queue_high if self.queue_high else worker.queue_rows
        cpu = worker.cpu / self.cpu_high if self.cpu_high else worker.cpu
        return max(queue, cpu), min(queue, cpu)


@dataclass(frozen=True)
class _Deployment:
    """Who owns what, how busy that makes them, and which moves are open."""

    snapshot: Snapshot
    low: frozenset[WorkerId]
    left: frozenset[tuple[Key, WorkerId]]
    """Slices, and workers that they left a short time ago."""
    slots: dict[WorkerId, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", {w.id: max(1, w.slots) for w in self.snapshot.workers})

    @cached_property
    def weights(self) -> dict[Key, float]:
        """By slice: the slots that it keeps busy, or its rate if that was not measured for any."""
        slices = self.snapshot.slices
        timed = any(s.load_s > 0 for s in slices)
        return {(s.operator, s.number): s.load_s if timed else s.rate for s in slices}

    @cached_property
    def loads(self) -> dict[WorkerId, float]:
        """By worker: the weight of its slices, a slot."""
        found = dict.fromkeys(self.slots, 0.0)
        for s in self.snapshot.slices:
            found[s.owner] = found.get(s.owner, 0.0) + self.weights[s.operator, s.number]
        return {worker: weight / self.slots.get(worker, 1) for worker, weight in found.items()}

    @cached_property
    def slices(self) -> dict[Key, Slice]:
        return {(s.operator, s.number): s for s in self.snapshot.slices}

    def pairs_from(self, source: WorkerId) -> list[Pair]:
        """All open moves of a worker's slices to workers with low load."""
        targets = sorted(self.low)
        return [
            Pair(s, target, self.gain(s, target), self._evens(s, target))
            for s in self.snapshot.slices
            if s.owner == source
            for target in targets
            if self._open(s, target)
        ]

    def most_local(self, threshold: float, slack: float) -> Pair | None:
        """The open move that saves most traffic, if that is more than the threshold.

        A move saves at most what the target sends, so that most of the traffic need not be looked at twice.
        """
        best, bound = None, float(threshold)
        for key, sent in self.snapshot.traffic.items():
            if sent < bound:
                continue
            operator, sender, number = key
            s = self.slices.get((operator, number))
            if s is None or s.owner == sender or sender not in self.low:
                continue
            pair = Pair(s, sender, self.gain(s, sender))
            better = pair.gain > threshold if best is None else pair.rank > best.rank
            if better and self._open(s, sender, slack):
                best, bound = pair, pair.gain
        return best

    def gain(self, s: Slice, target: WorkerId) -> float:
        """What the target sends to the slice less what its owner sends to it."""
        sent = self.snapshot.traffic.get
        return sent((s.operator, target, s.number), 0.0) - sent((s.operator, s.owner, s.number), 0.0)

    def _open(self, s: Slice, target: WorkerId, slack: float = 0.0) -> bool:
        """Not back to where it came from, and not if the target were then busier than the owner is now."""
        if s.owner == target or ((s.operator, s.number), target) in self.left:
            return False
        return self._after(s, target) <= self.loads[s.owner] + slack

    def _after(self, s: Slice, target: WorkerId) -> float:
        return self.loads[target] + self.weights[s.operator, s.number] / self.slots[target]

    def _evens(self, s: Slice, target: WorkerId) -> float:
        left = self.loads[s.owner] - self.weights[s.operator, s.number] / self.slots.get(s.owner, 1)
        return -max(left, self._after(s, target))


def _left(since: float, past: Past) -> frozenset[tuple[Key, WorkerId]]:
    """The slices that were moved, and from where: by the last change, and by all since then."""
    found: set[tuple[Key, WorkerId]] = set()
    for number, entry in enumerate(enacted(past)):
        if number and entry.at < since:
            break
        if isinstance(entry.decision, Rebalance):
            moved = entry.decision
            found.update(((moved.operator, s), moved.source) for s in moved.slices)
    return frozenset(found)


def _move(pair: Pair, reason: str) -> Rebalance:
    s = pair.slice
    return Rebalance(s.operator, frozenset({s.number}), s.owner, pair.target, reason)


def _change(gain: float) -> str:
    if gain == 0:
        return "the traffic between workers stays as it is"
    return f"{count(abs(gain))} bytes/s {'less' if gain > 0 else 'more'} between workers"
