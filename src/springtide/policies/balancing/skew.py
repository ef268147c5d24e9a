"""Skew: a slice that has far more to do than the others is split from its neighbours, and people learn its keys.

A slice is the least that can move, and a key is in one slice: what can be done for a hot one is to let its worker
do nothing else.
"""

from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.ids import WorkerId
from springtide.metrics.snapshot import Slice, Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance
from springtide.policies.past import Past
from springtide.policies.words import count, plural


@dataclass(frozen=True)
class Skew:
    """When a slice is hot, and when its worker needs help."""

    hot: float = 3.0
    """Times the load of an average slice of its operator."""
    uneven: float = 1.2
    """Times the load of an average worker."""

    def __post_init__(self) -> None:
        if not (self.hot > 1 and self.uneven >= 1):
            raise BadValue(f"hot and uneven: expected more than 1, and 1 or more, got {self.hot} and {self.uneven}")

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision:
        hottest = self._hottest(snapshot)
        if hottest is None:
            return Hold("no slice stands out")
        found, times = hottest
        told = f"slice {found.number} of {found.operator} has {times:.1f} times the mean's load{_keys(snapshot, found)}"
        loads = _loads(snapshot)
        mean = sum(loads.values()) / len(loads)
        if len(loads) < 2 or loads.get(found.owner, 0.0) <= self.uneven * mean:
            return Hold(f"{told}; its worker {found.owner} is no busier than the others")
        target = min(loads, key=lambda worker: (loads[worker], worker))
        moved = _neighbours(snapshot, found, (loads[found.owner] - loads[target]) / 2)
        if not moved:
            return Hold(f"{told}; it has its worker {found.owner} for itself, and can't be split further", warning=True)
        reason = f"{told}; {plural(len(moved), 'neighbour')} of it go from {found.owner} to {target}"
        return Rebalance(found.operator, frozenset(s.number for s in moved), found.owner, target, reason)

    def _hottest(self, snapshot: Snapshot) -> tuple[Slice, float] | None:
        """The slice with the most to do, and how many times the mean of its operator that is."""
        best: tuple[Slice, float] | None = None
        for operator in snapshot.operators:
            slices = [s for s in snapshot.slices if s.operator == operator]
            mean = sum(map(_weight, slices)) / len(slices) if slices else 0.0
            for s in slices:
                times = _weight(s) / mean if mean > 0 else 0.0
                if times >= self.hot and (best is None or times > best[1]):
                    best = (s, times)
        return best


def _weight(s: Slice) -> float:
    return s.load_s or s.rate


def _loads(snapshot: Snapshot) -> dict[WorkerId, float]:
    found = {worker.id: 0.0 for worker in snapshot.workers}
    for s in snapshot.slices:
        if s.owner in found:
            found[s.owner] += _weight(s)
    return found


def _neighbours(snapshot: Snapshot, hot: Slice, surplus: float) -> list[Slice]:
    """Other slices of its operator on its worker, with no more load than this in all; the heaviest that fit, first."""
    found = []
    mine = [s for s in snapshot.slices if (s.operator, s.owner) == (hot.operator, hot.owner) and s != hot]
    for s in sorted(mine, key=lambda s: (-_weight(s), s.number)):
        if 0 < _weight(s) <= surplus:
            found.append(s)
            surplus -= _weight(s)
    return found


def _keys(snapshot: Snapshot, hot: Slice) -> str:
    keys = [k for k in snapshot.hot_keys if (k.operator, k.slice) == (hot.operator, hot.number)][:3]
    told = ", ".join(f"{key.key} with {count(key.rate)} rows/s" for key in keys)
    return f" (its hottest keys: {told})" if told else ""
