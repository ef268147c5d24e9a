"""Steady streams, made by hand: what a controller would measure if all tasks kept up at given accuracies."""

from collections.abc import Mapping

from springtide.policies.shedding.graph import Query, Task, TaskGraph
from springtide.policies.shedding.model import Machine, Model, TaskInstance

RATE = 1_000.0
"""Rows a second that each source is offered."""


def taxi(priorities: tuple[int, int] = (0, 0), minima: tuple[float, float] = (0.4, 0.6)) -> TaskGraph:
    """Two streams; both sinks take the union of them."""
    queries = (Query("snk1", priorities[0], minima[0]), Query("snk2", priorities[1], minima[1]))
    both = ("src1", "src2")
    return TaskGraph(
        (Task("src1"), Task("src2"), Task("snk1", both, ("snk1",)), Task("snk2", both, ("snk2",))), queries
    )


def alone(*queries: Query) -> TaskGraph:
    """Each query is a task of its own that is its own source."""
    return TaskGraph(tuple(Task(query.name, (), (query.name,)) for query in queries), queries)


def inputs(graph: TaskGraph, offered: Mapping[str, float]) -> dict[str, float]:
    """By task: the rows a second that it would take in if nothing were shed; a task passes on what it takes in."""
    found: dict[str, float] = {}
    for layer, _ in graph.layers:
        for number in layer.tolist():
            task = graph.tasks[number]
            found[task.name] = sum(found[u] for u in task.upstream) if task.upstream else offered[task.name]
    return found


def steady(
    graph: TaskGraph,
    costs: Mapping[str, float],
    where: Mapping[str, str],
    cores: Mapping[str, float],
    *,
    accuracy: Mapping[str, float] | None = None,
    others: Mapping[str, float] | None = None,
    known_cpu: Mapping[str, float] | None = None,
) -> Model:
    """By task the cores of an instance at full accuracy, its workers as letters, and its accuracy (all unless told)."""
    full = inputs(graph, {task.name: RATE for task in graph.tasks if not task.upstream})
    at = {task.name: (accuracy or {}).get(task.name, 1.0) for task in graph.tasks}
    instances = tuple(
        TaskInstance(name, number, worker, at[name] * full[name] / len(where[name]), at[name] * costs[name])
        for name in graph.names
        for number, worker in enumerate(where[name])
    )
    in_use = dict(others or {})
    for instance in instances:
        in_use[instance.worker] = in_use.get(instance.worker, 0.0) + instance.cpu
    return Model(
        graph,
        tuple(Machine(name, size, in_use.get(name, 0.0)) for name, size in cores.items()),
        instances,
        {(u, t): at[u] * full[u] for u, t in graph.edges},
        {task.name: full[task.name] for task in graph.tasks if not task.upstream},
        known_cpu or {},
    )
