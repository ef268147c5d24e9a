"""How much of its input each task works on, as measured (equations 3 to 5 of Stream Economics).

The output rate of a task is that before shedding, so what is shed and what is not kept up with lower an accuracy alike.
"""

from dataclasses import dataclass

from springtide.policies.shedding.model import Model


def local_accuracy(in_rates: list[float], offered: float) -> float:
    """What the slowest instance of a task took of an even share of what there was for it (equation 4).

    All of it, if there was nothing; while a backlog is worked off it is above 1.
    """
    return min(in_rates) * len(in_rates) / offered if offered > 0 else 1.0


def current_accuracy(local: float, upstream: list[float]) -> float:
    """That of the least accurate upstream, less what the task itself falls behind (equation 3)."""
    return min(1.0, local) * min(upstream, default=1.0)


@dataclass(frozen=True)
class Measured:
    """By task."""

    current: list[float]
    """The current accuracy: what is guaranteed now, 0 to 1."""
    shares: list[float]
    """What the slowest instance worked on, of its even share of the full input: that is what its CPU is for.

    The current accuracy, where all upstreams of a task are equally accurate. One that feeds another query too may be
    more accurate than its neighbour, and the union of both then works on more than the less accurate one tells. Above 1
    while a backlog is worked off."""


def measured(model: Model) -> Measured:
    """The accuracy of all tasks, sources first."""
    upstream, rates_before, instances = model.graph.upstream, model.rates_before, model.instances_of
    size = len(upstream)
    current, shares, through = [0.0] * size, [0.0] * size, [0.0] * size
    for task in model.graph.order:
        before, rates = upstream[task], rates_before[task]
        found = instances[task]
        taken = [found[0][3]] if len(found) == 1 else [instance[3] for instance in found]
        offered = rates[0] if len(rates) == 1 else sum(rates)
        local = local_accuracy(taken, offered)
        accuracies = [current[each] for each in before]
        current[task] = current_accuracy(local, accuracies)
        if not before:
            full = offered
        elif 0.0 in accuracies:
            continue
        else:
            full = sum([rate / through[each] for rate, each in zip(rates, before, strict=True)])
        shares[task] = local_accuracy(taken, full)
        through[task] = sum(taken) / full if full > 0 else 1.0
    return Measured(current, shares)
