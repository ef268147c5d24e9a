"""Why the controller decided so, for people."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from springtide.policies.shedding.distribute import Rise
from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import Move
from springtide.policies.words import percent

CLOSE = 1e-9


@dataclass
class Limits:
    """By query: the most accurate that it may be, whatever the CPU, and which task is the cause."""

    most: list[float]
    why: dict[int, tuple[int, str]] = field(default_factory=dict)

    def lower(self, queries: Iterable[int], most: float, task: int, cause: str) -> None:
        for query in queries:
            if most < self.most[query]:
                self.most[query] = most
                self.why[query] = task, cause


def below(graph: Graph, levels: list[float]) -> tuple[str, ...]:
    """The queries that do not get their minimum accuracy."""
    return tuple([
        query.name
        for query, level in zip(graph.queries, levels, strict=True)
        if level < query.minimum_accuracy - CLOSE
    ])  # fmt: skip


def reasons(model: Model, rise: Rise, limits: Limits, moves: Iterable[Move]) -> tuple[str, ...]:
    """A sentence for each move and each query that sheds; one that says that all is well if there are none."""
    found = [move.reason for move in moves]
    for number, (query, level) in enumerate(zip(model.graph.queries, rise.levels, strict=True)):
        if level < 1:
            promise = f"minimum {percent(query.minimum_accuracy)}"
            if level < query.minimum_accuracy - CLOSE:
                promise = f"below its minimum of {percent(query.minimum_accuracy)}"
            why = _why(model, rise, limits, number)
            found.append(f"{query.name} keeps {percent(level)} of its rows ({promise}): {why}")
    return tuple(found) or ("nothing is shed: every query has all the CPU that it needs",)


def _why(model: Model, rise: Rise, limits: Limits, query: int) -> str:
    if query in limits.why and rise.levels[query] >= limits.most[query] - CLOSE:
        task, cause = limits.why[query]
        name = model.graph.tasks[task].name
        if cause == "core":
            return f"an instance of {name} would need {rise.costs[task]:.2f} cores for all, and has one"
        return f"an instance warms up on a worker of {name}"
    held = rise.held_by.get(query)
    if held is None:
        return "the workers of its tasks are full"
    machine, task = held
    which = model.machines[machine]
    return (
        f"{which.id} has {model.available[machine]:.2f} cores for all its tasks, and "
        f"an instance of {model.graph.tasks[task].name} alone would take {rise.costs[task]:.2f}"
    )
