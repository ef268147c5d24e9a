"""The ring of workers: a circle of slices, cut into one arc a worker.

A worker's token is the first slice of its arc, so a slice belongs to the worker with the nearest token at
it or counter-clockwise of it. Its replicas are on the next workers clockwise. A change of the ring moves
tokens, and with them only the slices next to them. Nothing here is random: the same calls give the same ring.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from springtide.errors import BadValue
from springtide.ids import SliceId, WorkerId
from springtide.plan.ring_join import NoRoom, Rooms
from springtide.plan.ring_level import level
from springtide.plan.worker import Worker


class BadRing(BadValue):
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
        known: set[WorkerId] = set()
        for worker, token in self.tokens:
            if not 0 <= token < self.slices:
                raise BadRing(f"worker {worker!r} has token {token}; the ring has slices 0 to {self.slices - 1}")
            if token in holder:
                raise BadRing(f"workers {holder[token]!r} and {worker!r} both have token {token}")
            if worker in known:
                raise BadRing(f"worker {worker!r} is on the ring twice")
            holder[token] = worker
            known.add(worker)
        strangers = set(self.zones) - known
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

    @cached_property
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
        found = [self.tokens[-1][0]] * self.tokens[0][1]
        for worker, token in self.tokens:
            found += [worker] * min(self.length(worker), self.slices - token)
        return tuple(found)

    def arc(self, worker: WorkerId) -> tuple[SliceId, ...]:
        """The slices of the worker, clockwise from its token."""
        token = self._token(worker)
        return tuple(SliceId((token + i) % self.slices) for i in range(self.length(worker)))

    def length(self, worker: WorkerId) -> int:
        """How many slices the worker has."""
        return (self._token(self.neighbour(worker)) - self._token(worker)) % self.slices or self.slices

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
        mine = self.zones[worker]
        elsewhere = len(self._zone_sizes) - 1
        away = len(self.tokens) - self._zone_sizes[mine]
        first: list[WorkerId] = []
        more: list[WorkerId] = []
        last: list[WorkerId] = []
        seen: set[str] = set()
        for other in others:
            zone = self.zones[other]
            if zone == mine:
                last.append(other)
            elif zone in seen:
                more.append(other)
            else:
                first.append(other)
                seen.add(zone)
            found = len(first) + len(more)
            enough = found if found < away else found + len(last)
            if len(first) >= r or (len(first) == elsewhere and enough >= r):
                break
        return (*first, *more, *last)[:r]

    def promoted(self, lost: Iterable[WorkerId], r: int) -> tuple[WorkerId, ...]:
        """The owner of each slice after the lost workers died together, with `r` replicas of each slice.

        A lost slice goes to its first replica that survives, else to the nearest survivor clockwise.
        """
        dead = frozenset(lost)
        if dead.issuperset(self.workers):
            raise BadRing(f"all {len(self.tokens)} workers are lost; nobody is left to own a slice")
        heir = {
            worker: next(w for w in (worker, *self.backups(worker, r), *self._clockwise_of(worker)) if w not in dead)
            for worker in dead.intersection(self.workers)
        }
        return tuple(heir.get(owner, owner) for owner in self.owners())

    def joined(self, worker: Worker, after: WorkerId | None = None) -> Ring:
        """The ring with a new worker half-way in the arc of `after`; only the second half of that arc moves.

        Without `after` it is the longest arc; among equals, the one where the zones alternate best.
        """
        if after is None:
            return self.joined_by([worker])
        self._check_new([worker])
        length = self.length(after)
        if length < 2:
            raise _too_short(worker.id, after)
        token = (self._token(after) + (length + 1) // 2) % self.slices
        return Ring(self.slices, (*self.tokens, (worker.id, token)), {**self.zones, worker.id: worker.zone})

    def joined_by(self, workers: Sequence[Worker]) -> Ring:
        """The ring after these workers joined one after the other."""
        self._check_new(workers)
        rooms = Rooms(self.slices, [(worker, token, self.zones[worker]) for worker, token in self.tokens])
        try:
            new = tuple(rooms.join(workers))
        except NoRoom as full:
            raise _too_short(full.worker, full.after) from None
        return Ring(self.slices, (*self.tokens, *new), {**self.zones, **{w.id: w.zone for w in workers}})

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

    def without(self, workers: Iterable[WorkerId]) -> Ring:
        """The ring after these workers left, each to its clockwise neighbour, one after the other."""
        leaving = frozenset(workers)
        staying = [worker for worker in self.workers if worker not in leaving]
        if not staying:
            raise BadRing(f"all {len(self.tokens)} workers cannot leave: the last one stays on the ring")
        tokens: dict[WorkerId, int] = {}
        begin: int | None = None
        first = self._index(staying[0])
        for worker, token in (*self.tokens[first + 1 :], *self.tokens[: first + 1]):
            begin = token if begin is None else begin
            if worker not in leaving:
                tokens[worker], begin = begin, None
        return Ring(self.slices, tuple(tokens.items()), {worker: self.zones[worker] for worker in staying})

    def balanced(self, hot: WorkerId, loads: Mapping[WorkerId, Load], thresholds: Thresholds) -> Ring:
        """The ring with half the hot worker's arc given to a neighbour that has room; else the same ring.

        The clockwise neighbour is asked first: it is the nearest to hold replicas of what it takes.
        """
        half = self.length(hot) // 2
        clockwise, counter_clockwise = self.neighbour(hot), self.previous(hot)
        if half == 0 or clockwise == hot:
            return self
        if thresholds.admit(loads.get(clockwise)):
            return self._shifted(clockwise, -half)
        if thresholds.admit(loads.get(counter_clockwise)):
            return self._shifted(hot, half)
        return self

    def levelled(self) -> Ring:
        """The ring with the same order of workers and arcs that differ by at most 1, moving the fewest slices.

        On a ring of thousands of workers it is nearly the fewest.
        """
        tokens = level([token for _, token in self.tokens], self.slices)
        return Ring(self.slices, tuple(zip(self.workers, tokens, strict=True)), self.zones)

    @cached_property
    def _places(self) -> dict[WorkerId, int]:
        return {worker: i for i, (worker, _) in enumerate(self.tokens)}

    @cached_property
    def _zone_sizes(self) -> Counter[str]:
        return Counter(self.zones.values())

    def _index(self, worker: WorkerId) -> int:
        try:
            return self._places[worker]
        except KeyError:
            raise BadRing(f"worker {worker!r} is not on the ring of {list(self.workers)}") from None

    def _token(self, worker: WorkerId) -> int:
        return self.tokens[self._index(worker)][1]

    def _clockwise_of(self, worker: WorkerId) -> Iterator[WorkerId]:
        at, n = self._index(worker), len(self.tokens)
        return (self.workers[i % n] for i in range(at + 1, at + n))

    def _check_new(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            if worker.id in self.zones:
                raise BadRing(f"worker {worker.id!r} is on the ring already")

    def _shifted(self, worker: WorkerId, by: int) -> Ring:
        token = (self._token(worker) + by) % self.slices
        return Ring(self.slices, tuple((dict(self.tokens) | {worker: token}).items()), self.zones)


def _too_short(worker: WorkerId, after: WorkerId) -> BadRing:
    return BadRing(f"worker {worker!r} cannot join: the arc of {after!r} is 1 slice, which cannot be shared")


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
