"""The quality-of-data controller: who gives way, and by how much, in the next cycle (Algorithm 1 of Stream Economics).

Every query has its minimum accuracy first. If a machine is too small for all minima, the cheapest instances of low
priority move to machines with room. What is left is shared by priority, and a query that gets less than it could use
sheds. So it is shedding that follows the load, and a move is the last resort.

If the minima fit nowhere, the highest priorities have theirs and lower ones fall below. An instance is one thread: if
a core is too little for a minimum, the query sheds more, as what cannot be worked on would pile up. The decision
names both.
"""

from collections.abc import Collection
from functools import partial

import numpy as np

from springtide.policies.shedding.accuracy import measured
from springtide.policies.shedding.arrays import Floats, ints
from springtide.policies.shedding.cpu import UNKNOWN, full_costs, most_accurate
from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.limits import Limits, below, sheds
from springtide.policies.shedding.model import InstanceKey, Model
from springtide.policies.shedding.probabilities import admit_probabilities, desired_of_tasks, keep_probabilities
from springtide.policies.shedding.relocate import Minima, minima, relocated
from springtide.policies.shedding.verdict import InstanceMove, QodDecision


def decide(model: Model, warming: Collection[InstanceKey] = frozenset(), *, seed: int = 0) -> QodDecision:
    """What to shed and whom to move in the next cycle; `warming` are instances that started a short time ago.

    The same for the same arguments; the seed draws lots between machines that are equally good for a move.
    """
    graph = model.graph
    accuracy = measured(model)
    new = ints([number for number, key in enumerate(model.keys) if key in warming] if warming else [])
    settling = set(model.place[new].tolist())
    costs = full_costs(model, accuracy, model.task[new])
    limits = Limits(graph)
    _one_core_each(costs, model.floors, limits)
    wanted = np.minimum(graph.query_minima, limits.most)
    held = minima(model, costs, graph.pairs.highest(wanted))
    moves = relocated(held, warming, settling, seed)
    _warm_up(held, settling.union(model.machine_index[move.target] for move in moves), limits)
    rise = _risen(held, costs, wanted, limits)
    return _decision(model, rise, limits, moves, accuracy.current)


def _one_core_each(costs: Floats, floors: Floats, limits: Limits) -> None:
    """No query is more accurate than a core an instance makes each of its tasks."""
    most = most_accurate(costs, floors)
    tasks = np.flatnonzero(most < 1)
    if len(tasks):
        limits.lower(tasks, most[tasks], limits.one_core)


def _warm_up(held: Minima, settling: set[int], limits: Limits) -> None:
    """Tasks with an instance on a machine where something settles run at their minimum accuracy."""
    if settling:
        tasks = np.unique(held.model.task[np.isin(held.place, list(settling))])
        limits.lower(tasks, held.model.graph.minima[tasks], limits.warm_up)


def _risen(held: Minima, costs: Floats, wanted: Floats, limits: Limits) -> Rise:
    """All queries at their minimum and, by priority, above it; below it only where the minima do not fit."""
    model = held.model
    if not held.short:
        rise = Rise(model.graph, costs, model.task, held.place, np.maximum(0.0, held.room), wanted.copy())
    else:
        nothing = np.zeros(len(wanted))
        rise = Rise(model.graph, costs, model.task, held.place, model.available.copy(), nothing)
        rise.to(wanted)
    rise.to(limits.most)
    return rise


def _decision(model: Model, rise: Rise, limits: Limits, moves: list[InstanceMove], current: Floats) -> QodDecision:
    graph, names = model.graph, model.graph.names
    desired = desired_of_tasks(graph, rise.levels)
    return QodDecision(
        accuracy=dict(zip(graph.query_index, rise.levels.tolist(), strict=True)),
        task_accuracy=dict(zip(names, desired.tolist(), strict=True)),
        admit=admit_probabilities(graph, desired),
        keep=keep_probabilities(graph, desired),
        moves=tuple(moves),
        current=dict(zip(names, current.tolist(), strict=True)),
        full_cpu={name: cost for name, cost in zip(names, rise.costs.tolist(), strict=True) if cost != UNKNOWN},
        below_minimum=below(graph, rise.levels),
        explain=partial(sheds, model, rise, limits),
    )
