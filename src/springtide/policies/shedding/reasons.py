"""Why the controller decided so, for people."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, lowest
from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import Move

CLOSE = 1e-9


@dataclass
class Limits:
    """The most accurate that a query may be, however much CPU there is."""

    graph: Graph
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


def below(graph: Graph, levels: Floats) -> tuple[str, ...]:
    """The queries that do not get their minimum accuracy."""
    return tuple([graph.queries[query].name for query in np.flatnonzero(levels < graph.query_minima - CLOSE).tolist()])


def reasons(model: Model, rise: Rise, limits: Limits, moves: Iterable[Move]) -> tuple[str, ...]:
    """A sentence for each move and each query that sheds; one that says that all is well if there are none."""
    found = [move.reason for move in moves]
    levels, limited = rise.levels.tolist(), (rise.levels >= limits.most - CLOSE).tolist()
    held_by, available, costs = rise.held_by.tolist(), model.available.tolist(), rise.costs.tolist()
    for number in np.flatnonzero(rise.levels < 1).tolist():
        query, level = model.graph.queries[number], levels[number]
        if limited[number] and number in limits.warm_up:
            why = f"an instance warms up on a worker of {model.graph.names[limits.warm_up[number]]}"
        elif limited[number] and number in limits.one_core:
            task = limits.one_core[number]
            why = f"an instance of {model.graph.names[task]} would need {costs[task]:.2f} cores for all, and has one"
        else:
            machine, task = held_by[number]
            why = (
                f"{model.machines[machine].id} has {available[machine]:.2f} cores for all its tasks, "
                f"and {model.graph.names[task]} would take {costs[task]:.2f} an instance"
            )
        promise = "minimum" if level >= query.minimum_accuracy - CLOSE else "below its minimum of"
        minimum = 100 * query.minimum_accuracy
        found.append(f"{query.name} keeps {100 * level:.0f} % ({promise} {minimum:.0f} %): {why}")
    return tuple(found) or ("nothing is shed: every query has all the CPU that it needs",)
