"""Taking slices off a worker so that it and another one need the same time."""

from collections.abc import Iterator

from springtide.ids import WorkerId
from springtide.metrics.snapshot import Slice, Snapshot
from springtide.policies.decision import Rebalance
from springtide.policies.words import count, plural


def evened(snapshot: Snapshot, operator: str, source: WorkerId, why: str) -> Iterator[Rebalance]:
    """Slices of the operator for the worker that is least busy, as many as make both need the same time.

    None if there is no other worker, or if each slice alone is too much: moving it would only move the trouble.
    """
    target = _least_busy(snapshot, source)
    if target is None:
        return
    mine = [s for s in snapshot.slices if (s.operator, s.owner) == (operator, source)]
    theirs = [s for s in snapshot.slices if (s.operator, s.owner) == (operator, target)]
    speed, other = _speed(snapshot, operator, source), _speed(snapshot, operator, target)
    speed, other = speed or other or 1.0, other or speed or 1.0
    surplus = (_rate(mine) * other - _rate(theirs) * speed) / (speed + other)
    moved = _fitting(mine, surplus)
    if moved:
        rows = f"{plural(len(moved), 'slice')} with {count(_rate(moved))} rows/s"
        reason = f"{why}; {rows} of {count(_rate(mine))} go from {source} to {target}"
        yield Rebalance(operator, frozenset(s.number for s in moved), source, target, reason)


def _least_busy(snapshot: Snapshot, but: WorkerId) -> WorkerId | None:
    """By the time spent on rows, a slot."""
    used_s = {worker.id: 0.0 for worker in snapshot.workers}
    slots = {worker.id: max(1, worker.slots) for worker in snapshot.workers}
    for instance in snapshot.instances:
        if instance.worker in used_s:
            used_s[instance.worker] += instance.useful_s / slots[instance.worker]
    return min((worker for worker in used_s if worker != but), key=lambda worker: used_s[worker], default=None)


def _speed(snapshot: Snapshot, operator: str, worker: WorkerId) -> float:
    return sum(i.true_rate for i in snapshot.operators[operator] if i.worker == worker)


def _rate(slices: list[Slice]) -> float:
    return sum(s.rate for s in slices)


def _fitting(slices: list[Slice], rate: float) -> list[Slice]:
    """Slices with this rate in all, or less: the largest that fit, first."""
    found = []
    for s in sorted(slices, key=lambda s: (-s.rate, s.number)):
        if 0 < s.rate <= rate:
            found.append(s)
            rate -= s.rate
    return found
