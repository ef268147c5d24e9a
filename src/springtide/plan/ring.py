"""The ring of workers: a circle of slices, cut into one arc a worker.

A worker's token is the first slice of its arc, so a slice belongs to the worker with the nearest token at
it or counter-clockwise of it. Its replicas are on the next workers clockwise. A change of the ring moves
tokens, and with them only the slices next to them. Nothing here is random: the same calls give the same ring.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from springtide.ids import SliceId, WorkerId
from springtide.plan.worker import Worker


class BadRing(ValueError):
    """A ring that leaves a slice without one owner, or a change that would make such a ring."""


@dataclass(frozen=True)
class Load:
    """How busy a worker is: `queue` rows wait for it, and it uses the share `cpu` (0..1) of its cores."""

    queue: float
    cpu: float


@dataclass(frozen=True)
class Thresholds:
    """A worker may take more on while its load is at or below both."""

    queue: float
    cpu: float

    def admit(self, load: Load | None) -> bool:
        """Whether a worker with this load has room; one that reported none has not."""
        return load is not None and load.queue <= self.queue and load.cpu <= self.cpu


@dataclass(frozen=True)
class Ring:
    """Who owns which slice: each worker's token, sorted clockwise, and each worker's fault zone."""

    slices: int
    tokens: tuple[tuple[WorkerId, int], ...]
    zones: Mapping[WorkerId, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.tokens:
            raise BadRing("a ring needs at least 1 worker")
        holder: dict[int, WorkerId] = {}
        for worker, token in self.tokens:
            if not 0 <= token < self.slices:
                raise BadRing(f"worker {worker!r} has token {token}; the ring has slices 0 to {self.slices - 1}")
            if token in holder:
                raise BadRing(f"workers {holder[token]!r} and {worker!r} both have token {token}")
            if worker in holder.values():
                raise BadRing(f"worker {worker!r} is on the ring twice")
            holder[token] = worker
        strangers = set(self.zones) - set(holder.values())
        if strangers:
            raise BadRing(f"zones given for workers {sorted(strangers)}, which are not on the ring")
        object.__setattr__(self, "tokens", tuple((holder[token], token) for token in sorted(holder)))
        object.__setattr__(self, "zones", {worker: self.zones.get(worker, "") for worker in self.workers})

    @staticmethod
    def even(slices: int, workers: Sequence[Worker]) -> Ring:
        """Arcs of equal length, give or take one slice; neighbours in different zones where the zones allow it."""
        if len(workers) > slices:
            raise BadRing(f"{len(workers)} workers cannot share {slices} slices; each needs at least 1")
        order = _alternating(workers)
        tokens = tuple((worker.id, i * slices // len(order)) for i, worker in enumerate(order))
        return Ring(slices, tokens, {worker.id: worker.zone for worker in order})

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        """All workers, clockwise from the lowest token."""
        return tuple(worker for worker, _ in self.tokens)

    def owner(self, slice: int) -> WorkerId:
        """The worker that owns the slice."""
        if not 0 <= slice < self.slices:
            raise BadRing(f"slice {slice} is not on the ring, which has slices 0 to {self.slices - 1}")
        return self.tokens[bisect_right(self.tokens, slice, key=lambda held: held[1]) - 1][0]

    def owners(self) -> tuple[WorkerId, ...]:
        """The owner of each slice, by slice."""
        owner = {slice: worker for worker in self.workers for slice in self.arc(worker)}
        return tuple(owner[SliceId(slice)] for slice in range(self.slices))

    def arc(self, worker: WorkerId) -> tuple[SliceId, ...]:
        """The slices of the worker, clockwise from its token."""
        token = self._token(worker)
        length = (self._token(self.neighbour(worker)) - token) % self.slices or self.slices
        return tuple(SliceId((token + i) % self.slices) for i in range(length))

    def neighbour(self, worker: WorkerId) -> WorkerId:
        """The next worker clockwise; a worker alone on its ring is its own neighbour."""
        return self.tokens[(self._index(worker) + 1) % len(self.tokens)][0]

    def previous(self, worker: WorkerId) -> WorkerId:
        """The next worker counter-clockwise; a worker alone on its ring is its own."""
        return self.tokens[self._index(worker) - 1][0]

    def replicas(self, slice: int, r: int) -> tuple[WorkerId, ...]:
        """The `r` workers, or all others if they are fewer, that hold a copy of the slice; see `backups`."""
        return self.backups(self.owner(slice), r)

    def backups(self, worker: WorkerId, r: int) -> tuple[WorkerId, ...]:
        """The `r` workers, or all others if they are fewer, that hold copies of the worker's slices, best first.

        First one of each zone other than the worker's, then more of these zones, then its own zone; always
        the nearest clockwise first.
        """
        if r < 0:
            raise BadRing(f"{r} replicas; there can be 0 or more")
        others = self._clockwise_of(worker)
        nearest = {self.zones[other]: other for other in reversed(others)}

        def rank(other: WorkerId) -> int:
            zone = self.zones[other]
            return 2 if zone == self.zones[worker] else 0 if other == nearest[zone] else 1

        return tuple(sorted(others, key=rank)[:r])

    def promoted(self, lost: Iterable[WorkerId], r: int) -> tuple[WorkerId, ...]:
        """The owner of each slice after the lost workers died together, with `r` replicas of each slice.

        A lost slice goes to its first replica that survives, else to the nearest survivor clockwise.
        """
        dead = frozenset(lost)
        if dead.issuperset(self.workers):
            raise BadRing(f"all {len(self.tokens)} workers are lost; nobody is left to own a slice")
        heir = {
            worker: next(w for w in (worker, *self.backups(worker, r), *self._clockwise_of(worker)) if w not in dead)
            for worker in self.workers
        }
        return tuple(heir[owner] for owner in self.owners())

    def joined(self, worker: Worker, after: WorkerId | None = None) -> Ring:
        """The ring with a new worker half-way in the arc of `after`; only the second half of that arc moves.

        Without `after` it is the longest arc; among equals, the one where the zones alternate best.
        """
        if worker.id in self.zones:
            raise BadRing(f"worker {worker.id!r} is on the ring already")
        after = self._roomiest(worker.zone) if after is None else after
        length = len(self.arc(after))
        if length < 2:
            raise BadRing(f"worker {worker.id!r} cannot join: the arc of {after!r} is 1 slice, which cannot be shared")
        token = (self._token(after) + (length + 1) // 2) % self.slices
        return Ring(self.slices, (*self.tokens, (worker.id, token)), {**self.zones, worker.id: worker.zone})

    def left(self, worker: WorkerId, heir: WorkerId | None = None) -> Ring:
        """The ring without the worker; its whole arc goes to `heir`, one of its two neighbours.

        The default heir is the counter-clockwise one, and no token moves. The clockwise one moves to the worker's
        token; where it holds the worker's replicas (see `backups`) it can take over without a copy.
        """
        previous, neighbour = self.previous(worker), self.neighbour(worker)
        if previous == worker:
            raise BadRing(f"worker {worker!r} cannot leave: it is the last one on the ring")
        if heir not in (None, previous, neighbour):
            raise BadRing(f"{heir!r} cannot take over from {worker!r}: it is not a neighbour on the ring")
        tokens = dict(self.tokens)
        token = tokens.pop(worker)
        if heir == neighbour:
            tokens[neighbour] = token
        zones = {other: zone for other, zone in self.zones.items() if other != worker}
        return Ring(self.slices, tuple(tokens.items()), zones)

    def balanced(self, hot: WorkerId, loads: Mapping[WorkerId, Load], thresholds: Thresholds) -> Ring:
        """The ring with half the hot worker's arc given to a neighbour that has room; else the same ring.

        The clockwise neighbour is asked first: it is the nearest to hold replicas of what it takes.
        """
        half = len(self.arc(hot)) // 2
        clockwise, counter_clockwise = self.neighbour(hot), self.previous(hot)
        if half == 0 or clockwise == hot:
            return self
        if thresholds.admit(loads.get(clockwise)):
            return self._shifted(clockwise, -half)
        if thresholds.admit(loads.get(counter_clockwise)):
            return self._shifted(hot, half)
        return self

    def levelled(self) -> Ring:
        """The ring with the same order of workers and arcs that differ by at most 1, moving the fewest slices."""
        level = _level([token for _, token in self.tokens], self.slices)
        return Ring(self.slices, tuple(zip(self.workers, level, strict=True)), self.zones)

    def _index(self, worker: WorkerId) -> int:
        try:
            return self.workers.index(worker)
        except ValueError:
            raise BadRing(f"worker {worker!r} is not on the ring of {list(self.workers)}") from None

    def _token(self, worker: WorkerId) -> int:
        return self.tokens[self._index(worker)][1]

    def _clockwise_of(self, worker: WorkerId) -> tuple[WorkerId, ...]:
        at = self._index(worker)
        return self.workers[at + 1 :] + self.workers[:at]

    def _shifted(self, worker: WorkerId, by: int) -> Ring:
        token = (self._token(worker) + by) % self.slices
        return Ring(self.slices, tuple((dict(self.tokens) | {worker: token}).items()), self.zones)

    def _roomiest(self, zone: str) -> WorkerId:
        """The worker with the longest arc; among equals, where a newcomer of this zone meets its own zone least."""

        def rank(worker: WorkerId) -> tuple[int, int]:
            here, there = self.zones[worker], self.zones[self.neighbour(worker)]
            return -len(self.arc(worker)), (zone == here) + (zone == there) - (here == there)

        return min(self.workers, key=rank)


def _alternating(workers: Sequence[Worker]) -> list[Worker]:
    """An order around the ring with as few neighbours of the same zone as there can be.

    Grouped by zone, the largest first, and read with a stride of the largest group's size, which is too
    long to meet the same zone twice.
    """
    size = Counter(worker.zone for worker in workers)
    first = {zone: i for i, zone in enumerate(size)}
    grouped = sorted(workers, key=lambda worker: (-size[worker.zone], first[worker.zone]))
    stride = max(size.values(), default=0)
    return [worker for start in range(stride) for worker in grouped[start::stride]]


def _level(tokens: Sequence[int], slices: int) -> list[int]:
    """The tokens, one for each of the sorted `tokens`, of level arcs that keep the most slices where they are.

    Dynamic programming for all positions of the first token at once: `kept[j, p]` is the most slices that the
    arcs so far can keep if the first one starts at `p` and `j` of them are one slice longer than the others.
    """
    share, longer = divmod(slices, len(tokens))
    start, used = np.arange(slices), np.arange(longer + 1)[:, np.newaxis]
    impossible = -2 * slices
    kept = np.where(used == 0, 0, np.full((longer + 1, slices), impossible))
    took_longer: list[NDArray[np.bool_]] = []
    for i, token in enumerate(tokens):
        length = (tokens[(i + 1) % len(tokens)] - token) % slices or slices
        mine = np.tile((start - token) % slices < length, 2)
        mine_before = np.concatenate(([0], np.cumsum(mine)))
        at = (start + i * share + used) % slices
        plain = kept + mine_before[at + share] - mine_before[at]
        extended = np.full_like(kept, impossible)
        extended[1:] = (kept + mine_before[at + share + 1] - mine_before[at])[:-1]
        took_longer.append(extended > plain)
        kept = np.maximum(plain, extended)
    first, j = int(kept[longer].argmax()), longer
    level = []
    for i in reversed(range(len(tokens))):
        j -= int(took_longer[i][j, first])
        level.append((first + i * share + j) % slices)
    return level[::-1]
