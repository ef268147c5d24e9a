"""What runs: tasks that feed one another, and the queries at their ends. Several apps are one graph of several parts.

A query's priority and its minimum accuracy hold for every task that feeds it; a task of several queries has the
highest of each (equations 1 and 2 of Stream Economics).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class BadModel(ValueError):
    """What the controller was told makes no sense."""

    def __init__(self, what: str, expected: str, found: object) -> None:
        super().__init__(what, expected, found)
        self.what, self.expected, self.found = what, expected, found

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.found!r}"


@dataclass(frozen=True)
class Query:
    """A result that somebody wants."""

    name: str
    priority: int = 0
    """A query of a lower one gives way first."""
    minimum_accuracy: float = 0.0
    """The share of the input without which the result is of no use, 0 to 1."""

    def __post_init__(self) -> None:
        if not isinstance(self.priority, int) or isinstance(self.priority, bool):
            raise BadModel(f"priority of query {self.name!r}", "an integer", self.priority)
        share = self.minimum_accuracy
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise BadModel(f"minimum accuracy of query {self.name!r}", "a share from 0 to 1", share)


# Thousands of tasks are made in each cycle, and a named tuple is made in a third of a frozen dataclass's time.
class Task(NamedTuple):
    """One step, or a chain of them that runs as one."""

    name: str
    upstream: tuple[str, ...] = ()
    """The tasks that feed it; none feed a source."""
    queries: tuple[str, ...] = ()
    """The queries whose results leave the graph here."""
    movable: bool = True
    """Whether its instances can go to another worker."""


@dataclass(frozen=True)
class Graph:
    """Tasks and queries by number: what follows from how they are linked is worked out once."""

    tasks: tuple[Task, ...]
    queries: tuple[Query, ...]

    def __post_init__(self) -> None:
        _different("query", self.query_index, [query.name for query in self.queries])
        _different("task", self.index, [task.name for task in self.tasks])
        for number, found in enumerate(self.queries_of):
            if not found:
                raise BadModel(f"task {self.tasks[number].name!r}", "a query that it feeds", ())

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {task.name: number for number, task in enumerate(self.tasks)}

    @cached_property
    def query_index(self) -> Mapping[str, int]:
        return {query.name: number for number, query in enumerate(self.queries)}

    @cached_property
    def upstream(self) -> list[tuple[int, ...]]:
        index = self.index
        try:
            return [tuple([index[name] for name in task[1]]) for task in self.tasks]
        except KeyError:
            task, strange = next((t, u) for t in self.tasks for u in t.upstream if u not in index)
            raise BadModel(f"upstream of task {task.name!r}", "a task of the graph", strange) from None

    @cached_property
    def downstream(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.tasks]
        for number, tasks in enumerate(self.upstream):
            for before in tasks:
                found[before].append(number)
        return found

    @cached_property
    def own(self) -> list[tuple[int, ...]]:
        """By task: the queries whose results leave the graph there."""
        index = self.query_index
        try:
            return [tuple([index[name] for name in task[2]]) for task in self.tasks]
        except KeyError:
            task, strange = next((t, q) for t in self.tasks for q in t.queries if q not in index)
            raise BadModel(f"queries of task {task.name!r}", "a query of the graph", strange) from None

    @cached_property
    def order(self) -> list[int]:
        """The tasks, each after all that feed it."""
        waits_for = [len(tasks) for tasks in self.upstream]
        ready = [number for number, before in enumerate(waits_for) if not before]
        for number in ready:
            for after in self.downstream[number]:
                waits_for[after] -= 1
                if not waits_for[after]:
                    ready.append(after)
        if len(ready) < len(self.tasks):
            stuck = next(number for number, before in enumerate(waits_for) if before)
            raise BadModel("the graph", "no task that feeds itself", self.tasks[stuck].name)
        return ready

    @cached_property
    def queries_of(self) -> list[tuple[int, ...]]:
        """By task: all queries that it feeds."""
        found = list(self.own)
        downstream = self.downstream
        for number in reversed(self.order):
            own, after = found[number], downstream[number]
            if len(after) == 1 and not own:
                found[number] = found[after[0]]
            elif after:
                found[number] = tuple(sorted({*own, *(query for task in after for query in found[task])}))
        return found

    @cached_property
    def priorities(self) -> list[int]:
        """By task: the highest priority of the queries that it feeds (equation 1)."""
        of = [query.priority for query in self.queries]
        return [of[found[0]] if len(found) == 1 else max([of[q] for q in found]) for found in self.queries_of]

    @cached_property
    def minima(self) -> list[float]:
        """By task: the highest minimum accuracy of the queries that it feeds (equation 2)."""
        return self.highest([query.minimum_accuracy for query in self.queries])

    def highest(self, accuracy: list[float]) -> list[float]:
        """By task: the most that a query that it feeds wants; with desired accuracies equation 5."""
        return [
            accuracy[found[0]] if len(found) == 1 else max([accuracy[q] for q in found]) for found in self.queries_of
        ]

    @cached_property
    def turns(self) -> list[dict[int, tuple[int, ...]]]:
        """By priority, the highest first: the tasks that feed a query of it, and which ones."""
        priority = [query.priority for query in self.queries]
        found: dict[int, dict[int, tuple[int, ...]]] = {each: {} for each in sorted(set(priority), reverse=True)}
        for number, queries in enumerate(self.queries_of):
            if len(queries) == 1:
                found[priority[queries[0]]][number] = queries
                continue
            for each in {priority[query] for query in queries}:
                found[each][number] = tuple([query for query in queries if priority[query] == each])
        return list(found.values())


def _different(what: str, index: Mapping[str, int], names: list[str]) -> None:
    if len(index) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadModel(f"{what} {twice!r}", "a name of its own", "it is there twice")
