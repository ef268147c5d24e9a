"""Accuracies become probabilities of keeping a row, as early in the graph as the queries allow (equations 14 and 15).

Along every way from a source to a query they multiply to the query's accuracy, so whatever a union takes in, from
whichever stream, has been thinned out alike. A stream that feeds another query too may be denser before it gets there.
"""

import numpy as np

from springtide.policies.shedding.arrays import Floats
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.model import Edge


def desired_of_tasks(graph: TaskGraph, queries: Floats) -> Floats:
    """By task: the most that any task after it wants, or a query whose result leaves there (equation 14)."""
    found = np.zeros(len(graph.tasks))
    tasks, ended = graph.own
    np.maximum.at(found, tasks, queries[ended])
    before, after = graph.ends
    for _, edges in reversed(graph.layers):
        np.maximum.at(found, before[edges], found[after[edges]])
    return found


def keep_probabilities(graph: TaskGraph, desired: Floats) -> dict[Edge, float]:
    """By edge between tasks, given the accuracies of tasks (equation 15)."""
    before, after = graph.ends
    share = np.divide(desired[after], desired[before], out=np.zeros(len(before)), where=desired[before] > 0)
    return dict(zip(graph.edges, share.tolist(), strict=True))


def admit_probabilities(graph: TaskGraph, desired: Floats) -> dict[str, float]:
    """By source: what it keeps of the rows that it fetches is its accuracy (equation 15, the external source)."""
    sources = graph.layers[0][0]
    return dict(zip([graph.names[task] for task in sources.tolist()], desired[sources].tolist(), strict=True))
