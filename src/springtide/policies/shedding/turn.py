"""One turn: the tasks that feed the queries of one priority, where their instances run, and what there is for them."""

from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, total
from springtide.policies.shedding.cpu import required_cpu
from springtide.policies.shedding.pairs import Pairs


@dataclass
class Turn:
    """Tasks are counted as in `pairs.tasks`, instances machine by machine; each time it begins with what is left."""

    pairs: Pairs
    instance: Ints
    """By instance: its task."""
    machine: Ints
    """By instance: where it runs."""
    first: Ints
    """By machine: its first instance, and at the end the number of all."""
    query: Ints
    """The queries of the first instance, then those of the second, and so on."""
    whose: Ints
    """By such a query: the instance."""
    cost: Floats
    """By task: the cores that full accuracy takes an instance."""
    base: Floats = field(init=False)
    """By task: the accuracy that it has CPU for."""
    has: Floats = field(init=False)
    """By task: the cores that an instance has for that."""
    room: Floats = field(init=False)
    """By machine: cores that nobody has yet."""

    def begin(self, base: Floats, room: Floats) -> None:
        """`base` is by task of the graph."""
        self.base, self.room = base[self.pairs.tasks], room
        self.has = required_cpu(self.base, self.cost)

    def asks(self, desired: Floats) -> Floats:
        """By task: the cores that an instance needs beyond those it has, if its queries get these accuracies."""
        return required_cpu(np.maximum(self.pairs.highest(desired), self.base), self.cost) - self.has

    def used(self, asks: Floats) -> Floats:
        """By machine."""
        return total(asks[self.instance], self.machine, len(self.room))


def turn_of(pairs: Pairs, task: Ints, place: Ints, machines: int, costs: Floats) -> Turn:
    """`task` and `place` tell by instance whose it is and where it runs, in order; `costs` are by task."""
    which = pairs.place[task]
    here = which >= 0
    instance, machine = which[here], place[here]
    count = pairs.count[instance]
    whose = np.repeat(np.arange(len(instance)), count)
    at = (pairs.start[instance] - np.cumsum(count) + count)[whose] + np.arange(len(whose))
    first = np.searchsorted(machine, np.arange(machines + 1))
    return Turn(pairs, instance, machine, first, pairs.query[at], whose, costs[pairs.tasks])
