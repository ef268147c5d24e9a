"""What keeps queries from full accuracy."""

from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, lowest
from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import Shed

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


def sheds(model: Model, rise: Rise, limits: Limits) -> tuple[Shed, ...]:
    """The queries that are not fully accurate, and what holds each back."""
    names, queries, costs = model.graph.names, model.graph.queries, rise.costs.tolist()
    levels, limited = rise.levels.tolist(), (rise.levels >= limits.most - CLOSE).tolist()
    machines, available = [machine.id for machine in model.machines], model.available.tolist()
    held_by, one_core, warm_up = rise.held_by.tolist(), limits.one_core, limits.warm_up
    found = []
    for number in np.flatnonzero(rise.levels < 1).tolist():
        name, _, minimum = queries[number]
        machine, task = held_by[number]
        warms = limited[number] and number in warm_up
        if warms or (limited[number] and number in one_core):
            task = warm_up[number] if warms else one_core[number]
            found.append(Shed(name, levels[number], minimum, names[task], costs[task], None, 0.0, warms))
        else:
            worker, cores = machines[machine], available[machine]
            found.append(Shed(name, levels[number], minimum, names[task], costs[task], worker, cores, False))
    return tuple(found)
