"""What runs: tasks that feed one another, and the queries at their ends. Several apps are one graph of several parts.

A query's priority and its minimum accuracy hold for every task that feeds it; a task of several queries has the
highest of each (equations 1 and 2 of Stream Economics).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from springtide.errors import BadValue
from springtide.policies.shedding.arrays import Floats, Ints, floats, ints
from springtide.policies.shedding.pairs import Pairs, pairs_of


class BadModel(BadValue):
    """What the controller was told makes no sense."""

    def __init__(self, what: str, expected: str, found: object) -> None:
        super().__init__(what, expected, found)
        self.what, self.expected, self.found = what, expected, found

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.found!r}"


# Thousands of these are made in each cycle, and a named tuple is made in a third of a frozen dataclass's time.
class Query(NamedTuple):
    """A result that somebody wants; a graph checks it."""

    name: str
    priority: int = 0
    """A query of a lower one gives way first."""
    minimum_accuracy: float = 0.0
    """The share of the input without which the result is of no use, 0 to 1."""


class Task(NamedTuple):
    """One step, or a chain of them that runs as one."""

    name: str
    upstream: tuple[str, ...] = ()
    """The tasks that feed it; none feed a source."""
    queries: tuple[str, ...] = ()
    """The queries whose results leave the graph here."""
    movable: bool = True
    """Whether its instances can go to another worker."""


TaskFields = Task | tuple[str, tuple[str, ...], tuple[str, ...], bool]
QueryFields = Query | tuple[str, int, float]


@dataclass(frozen=True)
class TaskGraph:
    """Tasks and queries by number: what follows from how they are linked is worked out once."""

    tasks: tuple[Task, ...]
    queries: tuple[Query, ...]

    @classmethod
    def since(
        cls, before: "TaskGraph | None", tasks: Iterable[TaskFields], queries: Iterable[QueryFields]
    ) -> "TaskGraph":
        """The graph of a cycle; that of the cycle before if nothing was linked anew, with all that was worked out."""
        tasks, queries = tuple(tasks), tuple(queries)
        if before is not None and before.tasks == tasks and before.queries == queries:
            return before
        return cls(tuple(map(Task._make, tasks)), tuple(map(Query._make, queries)))

    def __post_init__(self) -> None:
        for name, priority, minimum in self.queries:
            if type(priority) is not int:
                raise BadModel(f"priority of query {name!r}", "an integer", priority)
            if type(minimum) not in (int, float) or not 0 <= minimum <= 1:
                raise BadModel(f"minimum accuracy of query {name!r}", "a share from 0 to 1", minimum)
        _different("query", self.query_index, [query[0] for query in self.queries])
        _different("task", self.index, self.names)
        if not self.tasks:
            raise BadModel("the graph", "a task", ())
        if len(self.pairs.tasks) < len(self.tasks):
            useless = self.names[int(self.pairs.place.argmin())]
            raise BadModel(f"task {useless!r}", "a query that it feeds", ())

    @cached_property
    def names(self) -> list[str]:
        return [task[0] for task in self.tasks]

    @cached_property
    def index(self) -> Mapping[str, int]:
        return dict(zip(self.names, range(len(self.tasks)), strict=True))

    @cached_property
    def query_index(self) -> Mapping[str, int]:
        return {query[0]: number for number, query in enumerate(self.queries)}

    @cached_property
    def edges(self) -> list[tuple[str, str]]:
        """A task and one that it feeds; those to one task are neighbours."""
        return [(before, task[0]) for task in self.tasks for before in task[1]]

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """By edge: from which task to which."""
        index = self.index
        try:
            return ints([index[before] for before, _ in self.edges]), ints([index[after] for _, after in self.edges])
        except KeyError:
            strange, task = next(edge for edge in self.edges if edge[0] not in index)
            raise BadModel(f"upstream of task {task!r}", "a task of the graph", strange) from None

    @cached_property
    def layers(self) -> list[tuple[Ints, Ints]]:
        """Tasks, each in a later layer than all that feed it, and the edges to them; sources are the first layer."""
        before, after = self.ends
        depth = np.zeros(len(self.tasks), dtype=np.intp)
        for _ in range(len(self.tasks)):
            found = np.zeros_like(depth)
            np.maximum.at(found, after, depth[before] + 1)
            if (found == depth).all():
                edge_depth = depth[after]
                last = int(depth.max())
                return [(np.flatnonzero(depth == i), np.flatnonzero(edge_depth == i)) for i in range(last + 1)]
            depth = found
        raise BadModel("the graph", "no task that feeds itself", self.names[int(depth.argmax())])

    @cached_property
    def own(self) -> tuple[Ints, Ints]:
        """Pairs of a task and a query whose result leaves the graph there."""
        index = self.query_index
        try:
            found = [(task, index[name]) for task, (_, _, names, _) in enumerate(self.tasks) for name in names]
        except KeyError:
            task, strange = next((t, q) for t in self.tasks for q in t.queries if q not in index)
            raise BadModel(f"queries of task {task.name!r}", "a query of the graph", strange) from None
        return ints([task for task, _ in found]), ints([query for _, query in found])

    @cached_property
    def pairs(self) -> Pairs:
        """All tasks with all queries that each feeds."""
        task, query = self.own
        before, after = self.ends
        count = np.bincount(after, minlength=len(self.tasks))
        first = np.cumsum(count) - count
        known = found = np.unique(task * len(self.queries) + query)
        for _ in self.layers[1:]:
            # One edge further up, each query with all tasks that feed the last ones.
            task, query = np.divmod(found, len(self.queries))
            fed_by = count[task]
            edge = np.repeat(first[task] - np.cumsum(fed_by) + fed_by, fed_by) + np.arange(fed_by.sum())
            found = np.unique(before[edge] * len(self.queries) + np.repeat(query, fed_by))
            known = np.union1d(known, found)
        return pairs_of(*np.divmod(known, max(1, len(self.queries))), len(self.tasks))

    @cached_property
    def turns(self) -> list[Pairs]:
        """By priority, the highest first: the tasks that feed a query of it."""
        pairs = self.pairs
        priority = ints([query[1] for query in self.queries])[pairs.query]
        found = []
        for each in np.unique(priority)[::-1]:
            of = priority == each
            found.append(pairs_of(pairs.tasks[pairs.task[of]], pairs.query[of], len(self.tasks)))
        return found

    @cached_property
    def priorities(self) -> Ints:
        """By task: the highest priority of the queries that it feeds (equation 1)."""
        of = ints([query[1] for query in self.queries])
        return np.maximum.reduceat(of[self.pairs.query], self.pairs.start)

    @cached_property
    def movable(self) -> npt.NDArray[np.bool_]:
        """By task: whether its instances can go to another worker."""
        return np.array([task[3] for task in self.tasks])

    @cached_property
    def query_minima(self) -> Floats:
        return floats([query[2] for query in self.queries])

    @cached_property
    def minima(self) -> Floats:
        """By task: the highest minimum accuracy of the queries that it feeds (equation 2)."""
        return self.pairs.highest(self.query_minima)


def _different(what: str, index: Mapping[str, int], names: list[str]) -> None:
    if len(index) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadModel(f"{what} {twice!r}", "a name of its own", "it is there twice")
