"""Where an operator's rows go in an epoch: to the owner of their slice, and as a backup to those who stand by."""

from collections.abc import Iterable
from dataclasses import dataclass

from springtide.ids import InstanceId, SliceId
from springtide.plan.plan import OperatorPlan

Arcs = tuple[tuple[int, int], ...]
"""Ranges of slices: first, and one beyond the last."""


@dataclass(frozen=True)
class Route:
    """The slices whose rows go to an instance, to be processed or to be kept for a neighbour."""

    instance: InstanceId
    arcs: Arcs
    backup: bool = False


def routes(plan: OperatorPlan) -> tuple[Route, ...]:
    """All routes of an operator; the first instance of a worker takes in its backups."""
    found = [Route(InstanceId(i), arcs(plan.slices_of(InstanceId(i)))) for i in range(plan.instances)]
    for worker in dict.fromkeys(plan.worker_of):
        standby = plan.standby(worker)
        if standby:
            found.append(Route(InstanceId(plan.worker_of.index(worker)), arcs(standby), backup=True))
    return tuple(route for route in found if route.arcs)


def arcs(slices: Iterable[SliceId]) -> Arcs:
    """Slices as ranges."""
    found: list[tuple[int, int]] = []
    for number in sorted(slices):
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return tuple(found)
