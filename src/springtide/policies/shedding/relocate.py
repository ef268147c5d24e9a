"""Who leaves the machines that are too small for all minima, and where to (lines 7 to 14 of Algorithm 1)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from springtide.policies.shedding.cpu import required_cpu
from springtide.policies.shedding.model import InstanceKey, Model
from springtide.policies.shedding.reschedule import Candidate, chosen
from springtide.policies.shedding.scheduler import place
from springtide.policies.shedding.verdict import Move

CLOSE = 1e-9


@dataclass
class Minima:
    """What minimum accuracies cost, machine by machine; changes as instances are moved."""

    model: Model
    cpu: list[float]
    """By task: the cores that an instance takes at its minimum accuracy."""
    places: list[list[int]]
    """By task: the machine of each instance."""
    room: list[float]
    """By machine: the cores beyond all minima; below 0 if they do not fit."""
    promised: dict[str, float] = field(default_factory=dict)
    """By worker: the cores of instances that come, less those of instances that leave."""

    @property
    def short(self) -> list[int]:
        return [machine for machine, room in enumerate(self.room) if room < -CLOSE]

    def move(self, task: int, number: int, target: int) -> None:
        """Let an instance, counted within its task, run on another machine."""
        cpu, source = self.cpu[task], self.places[task][number]
        self.places[task][number] = target
        for machine, more in ((source, -cpu), (target, cpu)):
            name = self.model.machines[machine].id
            self.room[machine] -= more
            self.promised[name] = self.promised.get(name, 0.0) + more


def minima(model: Model, costs: list[float], accuracy: list[float]) -> Minima:
    """With these accuracies of tasks as their minima."""
    cpu = [required_cpu(minimum, cost) for minimum, cost in zip(accuracy, costs, strict=True)]
    places = [list(found) for found in model.places]
    room = list(model.available)
    for needed, found in zip(cpu, places, strict=True):
        for machine in found:
            room[machine] -= needed
    return Minima(model, cpu, places, room)


def relocated(held: Minima, warming: Collection[InstanceKey], settling: Collection[int], seed: int) -> list[Move]:
    """Moves from machines that cannot hold all minima to machines that then still can; `held` follows them.

    Nobody leaves a machine where something is settling: what is measured there is not to be trusted yet.
    """
    short = [machine for machine in held.short if machine not in settling]
    if not short:
        return []
    on: dict[int, list[tuple[int, int]]] = {machine: [] for machine in short}
    for task, found in enumerate(held.places):
        for number, machine in enumerate(found):
            instance = held.model.instances_of[task][number]
            if machine in on and held.model.graph.tasks[task].movable and instance.key not in warming:
                on[machine].append((task, number))
    random = Random(seed)
    return [move for machine in short for move in _from(machine, on[machine], held, random)]


def _from(machine: int, instances: list[tuple[int, int]], held: Minima, random: Random) -> list[Move]:
    model, needed, source = held.model, -held.room[machine], held.model.machines[machine].id
    widest = max((room for other, room in enumerate(held.room) if other != machine), default=0.0)
    who = {model.instances_of[task][number].key: (task, number) for task, number in instances}
    fitting = [
        Candidate(key, model.graph.priorities[task], held.cpu[task])
        for key, (task, _) in who.items()
        if held.cpu[task] <= widest + CLOSE
    ]
    moves = []
    for each in sorted(chosen(needed, fitting), key=lambda c: (-c.cpu, c.key)):
        full = {m.id for m, room in zip(model.machines, held.room, strict=True) if room < each.cpu - CLOSE}
        target = place(each.cpu, model.machines, random, promised=held.promised, avoid={source, *full})
        if target is None:
            continue
        held.move(*who[each.key], model.machine_index[target])
        reason = (
            f"instance {each.key[1]} of {each.key[0]} moves from {source} to {target}: the minimum accuracies "
            f"on {source} take {needed:.2f} cores too much; this one, of priority {each.priority}, frees {each.cpu:.2f}"
        )
        moves.append(Move(each.key, source, target, each.cpu, reason))
    return moves
