"""Where slices lie: the workers there are, their ring, and each slice's owner and weight, as arrays."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from springtide.ids import SliceId, WorkerId
from springtide.plan.moves import Move
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.simulator.scenario.scenario import OperatorModel, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PARCELS = 20_000
"""The most moves that a migration is made of; on larger rings neighbouring slices go together."""


class Placement:
    """Workers are numbered as they come; a number is never used again."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self.scenario = scenario
        self.slices = scenario.state.slices
        self.workers: list[Worker] = []
        self.number: dict[WorkerId, int] = {}
        self.slots = np.zeros(0)
        self.hosts = np.zeros(0, np.int64)
        first = self.hire(scenario.cluster.workers)
        self.ring = Ring.even(self.slices, first)
        owners = self.owners_on(self.ring)
        self.owner: dict[str, Ints] = {operator.name: owners.copy() for operator in scenario.operators}
        self.weight: dict[str, Floats] = {o.name: slice_weights(o, self.slices, rng) for o in scenario.operators}
        self.partner: dict[str, Ints] = {o.name: rng.permutation(self.slices) for o in scenario.operators}
        """By operator and slice: the slice upstream that most of its rows come from, if it has an affinity."""
        self._loads: dict[str, Floats] = {}

    def hire(self, count: int) -> list[Worker]:
        """New workers; they own nothing yet."""
        cluster = self.scenario.cluster
        found = []
        for i in range(len(self.workers), len(self.workers) + count):
            host = i // cluster.workers_a_host
            worker = Worker(WorkerId(f"w{i}"), f"host{host}", cluster.slots, f"zone{host % cluster.zones}")
            found.append(worker)
            self.number[worker.id] = i
        self.workers += found
        self.slots = np.append(self.slots, [float(w.slots) for w in found])
        self.hosts = np.append(self.hosts, [self.number[w.id] // cluster.workers_a_host for w in found])
        self._loads = {}
        return found

    def owners_on(self, ring: Ring) -> Ints:
        """By slice: the number of the worker that owns it on this ring."""
        numbers = np.array([self.number[worker] for worker in ring.workers])
        tokens = np.array([token for _, token in ring.tokens])
        at = np.repeat(numbers, np.diff([*tokens, tokens[0] + self.slices]))
        return np.roll(at, tokens[0])

    def load(self, operator: str) -> Floats:
        """By worker: its share of the operator's rows."""
        if operator not in self._loads:
            self._loads[operator] = self.load_of(operator, slice(None))
        return self._loads[operator]

    def load_of(self, operator: str, slices: Ints | slice) -> Floats:
        """By worker: its share of the operator's rows in some slices."""
        owner, weight = self.owner[operator][slices], self.weight[operator][slices]
        return np.bincount(owner, weight, len(self.workers)).astype(np.float64)

    def instances(self, operator: str) -> int:
        """Slots of the workers that own anything."""
        return int(self.slots[self.load(operator) > 0].sum())

    def give(self, operator: str, slices: Ints, to: int | Ints) -> None:
        self.owner[operator][slices] = to
        self._loads = {}

    def bytes_of(self, operator: OperatorModel) -> float:
        """The state of one slice."""
        return operator.keys * operator.key_bytes / self.slices

    def moves_to(self, ring: Ring) -> "Parcels":
        after = self.owners_on(ring)
        return Parcels(self, {o.name: after for o in self.scenario.operators})


class Parcels:
    """What must move, as moves of neighbouring slices with one owner before and one after."""

    def __init__(self, placement: Placement, after: dict[str, Ints]) -> None:
        most = max(1, len(after) * placement.slices // PARCELS)
        self.moves: list[Move] = []
        self._size: dict[tuple[str, SliceId], int] = {}
        self._number = placement.number
        ids = [worker.id for worker in placement.workers]
        for operator, owners in after.items():
            before = placement.owner[operator]
            moving = np.flatnonzero(before != owners)
            firsts, sizes = _runs(moving, before, owners, most)
            columns = firsts.tolist(), sizes.tolist(), before[firsts].tolist(), owners[firsts].tolist()
            for first, size, source, target in zip(*columns, strict=True):
                self.moves.append(Move(operator, SliceId(first), ids[source], ids[target]))
                self._size[operator, SliceId(first)] = size
        self.total = sum(self._size.values())

    @property
    def mean(self) -> float:
        """Slices of a move, on average."""
        return self.total / len(self.moves) if self.moves else 1.0

    def size(self, move: Move) -> int:
        """Slices of a move."""
        return self._size[move.operator, move.slice]

    def by_operator(self, moves: Iterable[Move]) -> dict[str, tuple[Ints, Ints]]:
        """By operator: all slices of these moves, and the number of the worker that each goes to."""
        found: dict[str, list[tuple[int, int, int]]] = {}
        for move in moves:
            row = move.slice, self.size(move), self._number[move.target]
            found.setdefault(move.operator, []).append(row)
        return {operator: _expanded(*np.array(rows).T) for operator, rows in found.items()}


def _expanded(firsts: Ints, sizes: Ints, targets: Ints) -> tuple[Ints, Ints]:
    """Runs of neighbours as single slices."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(firsts - before, sizes), np.repeat(targets, sizes)


def _runs(moving: Ints, before: Ints, after: Ints, most: int) -> tuple[Ints, Ints]:
    """First slices and sizes of runs: neighbours with one owner before and one after, at most `most` of them."""
    if not len(moving):
        return moving, moving
    gaps = (np.diff(moving) != 1) | (np.diff(before[moving]) != 0) | (np.diff(after[moving]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(gaps) + 1))
    position = np.arange(len(moving)) - np.repeat(starts, np.diff([*starts, len(moving)]))
    cuts = np.flatnonzero(position % most == 0)
    return moving[cuts], np.diff([*cuts, len(moving)])


def slice_weights(operator: OperatorModel, slices: int, rng: np.random.Generator) -> Floats:
    """By slice: its share of the operator's rows; which slices are hot is left to chance."""
    weights = np.arange(1, slices + 1, dtype=np.float64) ** -operator.skew
    if operator.skew:
        rng.shuffle(weights)
    return np.asarray(weights / weights.sum())
