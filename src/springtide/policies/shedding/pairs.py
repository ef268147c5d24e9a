"""Which tasks feed which queries, in columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, highest


@dataclass(frozen=True)
class Pairs:
    """Tasks and the queries that each feeds, as pairs; those of a task are neighbours."""

    tasks: Ints
    """The tasks that are in it, one after the other."""
    start: Ints
    """By such a task: its first pair."""
    task: Ints
    """By pair: which of `tasks`, by its place there."""
    query: Ints
    """By pair."""
    place: Ints
    """By task of the graph: its place in `tasks`, or -1."""

    @cached_property
    def count(self) -> Ints:
        """By task of `tasks`: its pairs."""
        return np.bincount(self.task, minlength=len(self.tasks))

    @cached_property
    def queries(self) -> Ints:
        """The queries that are in it, one after the other."""
        return np.unique(self.query)

    @cached_property
    def among_queries(self) -> Ints:
        """By pair: which of `queries`, by its place there."""
        return np.searchsorted(self.queries, self.query)

    def highest(self, of_query: Floats) -> Floats:
        """By task of `tasks`: the most that one of its queries has; with desired accuracies equation 5."""
        return highest(of_query[self.query], self.task, len(self.tasks))


def pairs_of(task: Ints, query: Ints, size: int) -> Pairs:
    """Given by pair, in order of the tasks; `size` is the number of all tasks."""
    new = np.ones(len(task), dtype=bool)
    new[1:] = task[1:] != task[:-1]
    start = np.flatnonzero(new)
    place = np.full(size, -1, dtype=np.intp)
    place[task[start]] = np.arange(len(start))
    return Pairs(task[start], start, np.cumsum(new) - 1, query, place)
