"""How much of its input each task works on, as measured (equations 3 and 4 of Stream Economics).

The output rate of a task is that before shedding, so what is shed and what is not kept up with lower an accuracy alike.
"""

from dataclasses import dataclass

import numpy as np

from springtide.policies.shedding.arrays import Floats, lowest, total
from springtide.policies.shedding.model import Model


@dataclass(frozen=True)
class Accuracy:
    """By task."""

    current: Floats
    """What is guaranteed now, 0 to 1."""
    share: Floats
    """What the slowest instance worked on, of an even share of the full input: that is what its CPU was used for.

    The current accuracy, where all upstreams of a task are equally accurate. One that feeds another query too may be
    more accurate than its neighbour, and the union of both then works on more than the less accurate one tells. Above 1
    while a backlog is worked off."""


def local_accuracy(model: Model) -> Floats:
    """What the slowest instance took of an even share of what there was for its task (equation 4).

    All of it, if there was nothing; above 1 while a backlog is worked off.
    """
    there = model.source_rates + total(model.edge_rates, model.graph.ends[1], len(model.size))
    return _of(model.least * model.size, there)


def measured(model: Model) -> Accuracy:
    """The accuracy of all tasks, sources first."""
    size = len(model.size)
    local, rates = np.minimum(1.0, local_accuracy(model)), model.edge_rates
    slowest, taken = model.least * model.size, total(model.in_rate, model.task, size)
    before, after = model.graph.ends
    current, share, through = np.ones(size), np.zeros(size), np.zeros(size)
    full = model.source_rates.copy()
    for tasks, edges in model.graph.layers:
        if len(edges):
            source, target = before[edges], after[edges]
            # Equation 3: the least accurate upstream tells what is guaranteed.
            current = np.minimum(current, lowest(current[source], target, size))
            full += total(_of(rates[edges], through[source], 0.0), target, size)
        current[tasks] *= local[tasks]
        known = tasks[current[tasks] > 0]
        share[known] = _of(slowest[known], full[known])
        through[known] = _of(taken[known], full[known])
    return Accuracy(current, share)


def _of(part: Floats, whole: Floats, otherwise: float = 1.0) -> Floats:
    found: Floats = np.divide(part, whole, out=np.full(len(whole), otherwise), where=whole > 0)
    return found
