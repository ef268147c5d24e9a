"""Who leaves the machines that are too small for all minima, and where to (lines 7 to 14 of Algorithm 1)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, total
from springtide.policies.shedding.cpu import required_cpu
from springtide.policies.shedding.model import InstanceKey, Model
from springtide.policies.shedding.reschedule import Candidate, chosen
from springtide.policies.shedding.scheduler import place
from springtide.policies.shedding.verdict import InstanceMove

CLOSE = 1e-9


@dataclass
class Minima:
    """What minimum accuracies cost, machine by machine; changes as instances are moved."""

    model: Model
    cpu: Floats
    """By task: the cores that an instance takes at its minimum accuracy."""
    place: Ints
    """By instance: its machine."""
    room: Floats
    """By machine: the cores beyond all minima; below 0 if they do not fit."""
    promised: dict[str, float] = field(default_factory=dict)
    """By worker: the cores of instances that come, less those of instances that leave."""

    @property
    def short(self) -> list[int]:
        found: list[int] = np.flatnonzero(self.room < -CLOSE).tolist()
        return found

    def move(self, instance: int, target: int) -> None:
        """Let an instance run on another machine."""
        cpu, source = float(self.cpu[self.model.task[instance]]), int(self.place[instance])
        self.place[instance] = target
        for machine, more in ((source, -cpu), (target, cpu)):
            name = self.model.machines[machine].id
            self.room[machine] -= more
            self.promised[name] = self.promised.get(name, 0.0) + more


def minima(model: Model, costs: Floats, accuracy: Floats) -> Minima:
    """With these accuracies of tasks as their minima (equation 9)."""
    cpu = required_cpu(accuracy, costs)
    room = model.available - total(cpu[model.task], model.place, len(model.machines))
    return Minima(model, cpu, model.place.copy(), room)


def relocated(
    held: Minima, warming: Collection[InstanceKey], settling: Collection[int], seed: int
) -> list[InstanceMove]:
    """Moves from machines that cannot hold all minima to machines that then still can; `held` follows them.

    Nobody leaves a machine where something is settling: what is measured there is not to be trusted yet.
    """
    short = [machine for machine in held.short if machine not in settling]
    if not short:
        return []
    random, crews = Random(seed), _crews(held, warming)
    # Who comes to a machine makes no other candidate: it has room, or had its turn.
    return [move for machine in short for move in _from(machine, held, crews[machine], random)]


def _crews(held: Minima, warming: Collection[InstanceKey]) -> list[Ints]:
    """By machine: its instances that can move."""
    model = held.model
    can = (held.cpu > 0) & model.graph.movable
    movable = np.flatnonzero(can[model.task])
    if warming:
        movable = movable[[model.keys[number] not in warming for number in movable.tolist()]]
    where = held.place[movable]
    by_machine = np.argsort(where, kind="stable")
    return np.split(movable[by_machine], np.searchsorted(where[by_machine], np.arange(1, len(model.machines))))


def _from(machine: int, held: Minima, crew: Ints, random: Random) -> list[InstanceMove]:
    model, needed, source = held.model, -float(held.room[machine]), held.model.machines[machine].id
    widest = float(held.room.max())  # That is another machine: this one has less than nothing.
    if widest <= CLOSE:
        return []
    moves = []
    leaving = chosen(needed, _candidates(held, crew, widest))
    for each in sorted(leaving, key=lambda c: (-c.cpu, c.key)):
        full = {model.machines[number].id for number in np.flatnonzero(held.room < each.cpu - CLOSE).tolist()}
        target = place(each.cpu, model.machines, random, promised=held.promised, avoid={source, *full})
        if target is None:
            continue
        held.move(each.number, model.machine_index[target])
        reason = (
            f"instance {each.key[1]} of {each.key[0]} moves from {source} to {target}: the minimum accuracies "
            f"on {source} take {needed:.2f} cores too much; this one, of priority {each.priority}, frees {each.cpu:.2f}"
        )
        moves.append(InstanceMove(each.key, source, target, each.cpu, reason))
    return moves


def _candidates(held: Minima, crew: Ints, widest: float) -> Iterator[Candidate]:
    """Those of some instances for which another machine has room."""
    model = held.model
    fits = crew[held.cpu[model.task[crew]] <= widest + CLOSE]
    tasks = model.task[fits]
    columns = (model.graph.priorities[tasks], held.cpu[tasks], fits)
    for priority, cores, number in zip(*(column.tolist() for column in columns), strict=True):
        yield Candidate(model.keys[number], priority, cores, number)
