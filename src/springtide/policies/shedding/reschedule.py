"""Which instances leave a machine that cannot hold all minimum accuracies (Algorithm 2 of Stream Economics)."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from springtide.policies.shedding.model import InstanceKey


class Candidate(NamedTuple):
    """An instance that could leave."""

    key: InstanceKey
    priority: int
    cpu: float
    """The cores that it takes at its minimum accuracy: what its leaving sets free."""
    number: int = 0
    """Which instance of the model it is."""


def chosen(needed: float, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The instances to move so that at least `needed` cores are free; all that help, if even that is not enough.

    Low priorities are looked at first, and of those no more than it takes. Then whoever can stay stays, the high
    priorities and the costly instances before the others: cheap ones find room elsewhere more easily and
    recover sooner.

    The published listing leaves room for doubt in three places:

    - It walks the priorities as they come, which elsewhere is from high to low; its text says that low ones are
      targeted first, and so it is here.
    - It lowers the cores still needed with each instance that has to leave, but goes on comparing them with the sum
      of all candidates. With 0.6 and 0.5 cores and 1.0 needed, only the first would leave. Here that sum, less
      those who stay, is compared with all that is needed.
    - It returns a name that nothing is assigned to: what the moved instances set free is meant.
    """
    taken: list[Candidate] = []
    free = 0.0
    useful = (each for each in candidates if each.cpu > 0)
    for _, group in groupby(sorted(useful, key=lambda each: each.priority), lambda each: each.priority):
        if free >= needed:
            break
        members = list(group)
        taken += members
        free += sum(each.cpu for each in members)
    moved = []
    for each in sorted(taken, key=lambda c: (-c.priority, -c.cpu, c.key)):
        if free - each.cpu >= needed:
            free -= each.cpu
        else:
            moved.append(each)
    return tuple(moved)
