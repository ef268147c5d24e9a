"""What keeps queries from full accuracy."""

from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, lowest
from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import Shed

CLOSE = 1e-9


@dataclass
class Limits:
    """The most accurate that a query may be, however much CPU there is."""

    graph: TaskGraph
    most: Floats = field(init=False)
    """By query."""
    one_core: dict[int, int] = field(default_factory=dict)
    """By query: the task of which an instance would need more than a core."""
    warm_up: dict[int, int] = field(default_factory=dict)
    """By query: the task beside which something warms up."""

    def __post_init__(self) -> None:
        self.most = np.ones(len(self.graph.queries))

    def lower(self, tasks: Ints, accuracy: Floats, causes: dict[int, int]) -> None:
        """Hold the queries of some tasks down to these accuracies, and note the cause."""
        pairs = self.graph.pairs
        limit = np.ones(len(self.graph.tasks))
        limit[tasks] = accuracy
        of_pair = limit[pairs.task]
        least = lowest(of_pair, pairs.query, len(self.most), 1.0)
        cause = (of_pair < self.most[pairs.query]) & (of_pair == least[pairs.query])
        causes.update(zip(pairs.query[cause].tolist(), pairs.task[cause].tolist(), strict=True))
        self.most = np.minimum(self.most, least)


def below(graph: TaskGraph, levels: Floats) -> tuple[str, ...]:
    """The queries that do not get their minimum accuracy."""
    return tuple([graph.queries[query].name for query in np.flatnonzero(levels < graph.query_minima - CLOSE).tolist()])


def sheds(model: Model, rise: Rise, limits: Limits) -> tuple[Shed, ...]:
    """The queries that are not fully accurate, and what holds each back."""
    graph = model.graph
    which = np.flatnonzero(rise.levels < 1)
    machine, task = rise.held_by[which].T
    limited = np.flatnonzero(rise.levels[which] >= limits.most[which] - CLOSE)
    warms = np.zeros(len(which), dtype=bool)
    for number, query in zip(limited.tolist(), which[limited].tolist(), strict=True):
        warms[number] = query in limits.warm_up
        cause = limits.warm_up.get(query, limits.one_core.get(query))
        if cause is not None:
            machine[number], task[number] = -1, cause
    workers = [*(each.id for each in model.machines), None]  # The last one, -1, is none.
    cores = np.append(model.available, 0.0)[machine]
    names, queries = graph.names, graph.queries
    columns = (which, rise.levels[which], task, rise.costs[task], machine, cores, warms)
    return tuple(
        [
            Shed(queries[query][0], level, queries[query][2], names[task], cpu, workers[machine], free, warm_up)
            for query, level, task, cpu, machine, free, warm_up in zip(*(c.tolist() for c in columns), strict=True)
        ]
    )
