"""The quality-of-data controller: who gives way, and by how much, in the next cycle (Algorithm 1 of Stream Economics).

Every query has its minimum accuracy first. If a machine is too small for all minima, the cheapest instances of low
priority move to machines with room. What is left is shared by priority, and a query that gets less than it could use
sheds. So it is shedding that follows the load, and a move is the last resort.

If the minima fit nowhere, the highest priorities have theirs and lower ones fall below. An instance is one thread: if
a core is too little for a minimum, the query sheds more, as what cannot be worked on would pile up. The decision
names both.
"""

from collections.abc import Collection

from springtide.policies.shedding.accuracy import measured
from springtide.policies.shedding.cpu import UNKNOWN, full_costs, most_accurate
from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.model import InstanceKey, Model
from springtide.policies.shedding.probabilities import admit_probabilities, desired_of_tasks, keep_probabilities
from springtide.policies.shedding.reasons import Limits, below, reasons
from springtide.policies.shedding.relocate import Minima, minima, relocated
from springtide.policies.shedding.verdict import Move, QodDecision


def decide(model: Model, warming: Collection[InstanceKey] = frozenset(), *, seed: int = 0) -> QodDecision:
    """What to shed and whom to move in the next cycle; `warming` are instances that started a short time ago.

    The same for the same arguments; the seed draws lots between machines that are equally good for a move.
    """
    graph = model.graph
    accuracy = measured(model)
    new = {graph.index[task] for task, _ in warming if task in graph.index}
    settling = {
        place for task in new for instance, place in zip(model.instances_of[task], model.places[task], strict=True)
        if instance.key in warming
    }  # fmt: skip
    costs = full_costs(model, accuracy, new)
    limits = Limits([1.0] * len(graph.queries))
    _one_core_each(model, costs, limits)
    wanted = [min(query.minimum_accuracy, most) for query, most in zip(graph.queries, limits.most, strict=True)]
    held = minima(model, costs, graph.highest(wanted))
    moves = relocated(held, warming, settling, seed)
    _warm_up(held, {*settling, *(model.machine_index[move.target] for move in moves)}, limits)
    rise = _risen(held, costs, wanted, limits)
    return _decision(model, rise, limits, moves, accuracy.current)


def _one_core_each(model: Model, costs: list[float], limits: Limits) -> None:
    """No query is more accurate than a core an instance makes each of its tasks."""
    for task, cost in enumerate(costs):
        most = most_accurate(cost)
        if most < 1:
            limits.lower(model.graph.queries_of[task], most, task, "core")


def _warm_up(held: Minima, settling: set[int], limits: Limits) -> None:
    """Tasks with an instance on a machine where something settles run at their minimum accuracy."""
    if not settling:
        return
    graph = held.model.graph
    for task, places in enumerate(held.places):
        if not settling.isdisjoint(places):
            limits.lower(graph.queries_of[task], graph.minima[task], task, "warm-up")


def _risen(held: Minima, costs: list[float], wanted: list[float], limits: Limits) -> Rise:
    """All queries at their minimum and, by priority, above it; below it only where the minima do not fit."""
    if not held.short:
        rise = Rise(held.model, costs, held.places, [max(0.0, room) for room in held.room], list(wanted))
    else:
        rise = Rise(held.model, costs, held.places, list(held.model.available), [0.0] * len(wanted))
        rise.to(wanted)
    rise.to(limits.most)
    return rise


def _decision(model: Model, rise: Rise, limits: Limits, moves: list[Move], current: list[float]) -> QodDecision:
    graph = model.graph
    desired = desired_of_tasks(graph, rise.levels)
    names = [task[0] for task in graph.tasks]
    return QodDecision(
        accuracy={query.name: level for query, level in zip(graph.queries, rise.levels, strict=True)},
        task_accuracy=dict(zip(names, desired, strict=True)),
        admit=admit_probabilities(graph, desired),
        keep=keep_probabilities(graph, desired),
        moves=tuple(moves),
        current=dict(zip(names, current, strict=True)),
        full_cpu={name: cost for name, cost in zip(names, rise.costs, strict=True) if cost != UNKNOWN},
        below_minimum=below(graph, rise.levels),
        reasons=reasons(model, rise, limits, moves),
    )
