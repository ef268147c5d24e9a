"""One turn: the tasks that feed the queries of one priority, where their instances run, and what there is for them."""

from dataclasses import dataclass

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, total
from springtide.policies.shedding.cpu import required_cpu
from springtide.policies.shedding.pairs import Pairs


@dataclass(frozen=True)
class Turn:
    """Tasks are counted as in `pairs.tasks`, instances machine by machine."""

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
    base: Floats
    """By task: the accuracy that it has CPU for."""
    has: Floats
    """By task: the cores that an instance has for that."""
    room: Floats
    """By machine: cores that nobody has yet."""

    def asks(self, desired: Floats) -> Floats:
        """By task: the cores that an instance needs beyond those it has, if its queries get these accuracies."""
        return required_cpu(np.maximum(self.pairs.highest(desired), self.base), self.cost) - self.has

    def used(self, asks: Floats) -> Floats:
        """By machine."""
        return total(asks[self.instance], self.machine, len(self.room))


def turn_of(pairs: Pairs, task: Ints, place: Ints, costs: Floats, base: Floats, room: Floats) -> Turn:
    """`task` and `place` tell by instance whose it is and where it runs, in order; `costs` and `base` are by task."""
    which = pairs.place[task]
    here = which >= 0
    instance, machine = which[here], place[here]
    count = np.diff(pairs.start, append=len(pairs.query))[instance]
    whose = np.repeat(np.arange(len(instance)), count)
    at = (pairs.start[instance] - np.cumsum(count) + count)[whose] + np.arange(len(whose))
    cost, has = costs[pairs.tasks], base[pairs.tasks]
    return Turn(
        pairs, instance, machine, np.searchsorted(machine, np.arange(len(room) + 1)),
        pairs.query[at], whose, cost, has, required_cpu(has, cost), room,
    )  # fmt: skip
