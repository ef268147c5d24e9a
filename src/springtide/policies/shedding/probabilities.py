"""Accuracies become probabilities of keeping a row, as early in the graph as the queries allow (equations 14 and 15).

Along every way from a source to a query they multiply to the query's accuracy, so whatever a union takes in, from
whichever stream, has been thinned out alike. A stream that feeds another query too may be denser before it gets there.
"""

from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.model import Edge


def desired_of_tasks(graph: Graph, queries: list[float]) -> list[float]:
    """By task: the most that any task or query after it wants (equation 14)."""
    found = [0.0] * len(graph.tasks)
    own, downstream = graph.own, graph.downstream
    for task in reversed(graph.order):
        after = [found[each] for each in downstream[task]]
        found[task] = max(after + [queries[each] for each in own[task]])
    return found


def keep_probability(before: float, after: float) -> float:
    """Between a task and one that it feeds, with these accuracies (equation 15)."""
    return after / before if before > 0 else 0.0


def keep_probabilities(graph: Graph, desired: list[float]) -> dict[Edge, float]:
    """By edge between tasks, given the accuracies of tasks."""
    found: dict[Edge, float] = {}
    for task, before, accuracy in zip(graph.tasks, graph.upstream, desired, strict=True):
        for name, number in zip(task[1], before, strict=True):
            found[name, task[0]] = keep_probability(desired[number], accuracy)
    return found


def admit_probabilities(graph: Graph, desired: list[float]) -> dict[str, float]:
    """By source: what it keeps of the rows that it fetches is its accuracy (equation 15, the external source)."""
    return {task[0]: accuracy for task, accuracy in zip(graph.tasks, desired, strict=True) if not task[1]}
