"""What accuracy costs: CPU and accuracy are proportional (equations 6 to 13 of Stream Economics).

CPU is that of one instance, in cores. An instance is one thread: it never has more than one core.
"""

import math
from collections.abc import Collection

from springtide.policies.shedding.accuracy import Measured
from springtide.policies.shedding.model import Model, TaskInstance

CORE = 1.0
"""The most that an instance can use, and the guess for one that nothing is known of."""
UNKNOWN = math.inf
"""The cost of full accuracy if a task has worked on nothing yet."""


def expected_cpu(instances: list[TaskInstance]) -> float:
    """The CPU of the instance that takes in least, as its rate is the task's accuracy (equation 6).

    The most of it, among instances that take in equally little.
    """
    if len(instances) == 1:
        return instances[0][4]
    least = min([instance[3] for instance in instances])
    return max([instance[4] for instance in instances if instance[3] == least])


def minimum_obtained_cpu(available: float, instances: int) -> float:
    """What each of the instances of one priority on a machine is sure to get (equation 7)."""
    return available / instances


def full_cpu(cpu: float, share: float) -> float:
    """What full accuracy costs, if `cpu` is used for this share of it; unknown if that is none."""
    return cpu / share if share > 0 else UNKNOWN


def required_cpu(accuracy: float, full: float) -> float:
    """What an accuracy costs (equations 8 to 10): nothing if it is none, a core if nothing is known."""
    return min(accuracy * full, CORE) if accuracy > 0 else 0.0


def obtained_accuracy(given: float, full: float, current: float) -> float:
    """What accuracy some CPU is good for (equation 11).

    Hopeful about a task that nothing is known of, and about one that seems to need no CPU.
    """
    if full == UNKNOWN:
        return 1.0 if given > 0 else 0.0
    if full == 0:
        return 1.0 if given > 0 else current
    return min(given / full, 1.0)


def most_accurate(full: float) -> float:
    """The accuracy that one core is good for."""
    return CORE / full if CORE < full < UNKNOWN else 1.0


def slack(asked: list[float], available: float) -> float:
    """The cores that instances of one priority ask for on a machine beyond what each is sure to get (12 and 13)."""
    sure = minimum_obtained_cpu(available, len(asked)) if asked else 0.0
    return sum([each - sure for each in asked])


def full_costs(model: Model, accuracy: Measured, warming: Collection[int]) -> list[float]:
    """By task: what full accuracy costs an instance, unless it is unknown.

    What was known before stands in for a task that works on nothing now, as all of it was shed, and for one of which an
    instance warms up. Otherwise the one would come back at full accuracy as soon as there is any CPU, and
    the other, which takes in little yet, would seem to need a core.
    """
    found = []
    known = model.known_cpu
    for task, (instances, share) in enumerate(zip(model.instances_of, accuracy.shares, strict=True)):
        if share <= 0 or task in warming:
            before = known.get(model.graph.tasks[task].name)
            if before is not None:
                found.append(before)
                continue
        found.append(full_cpu(expected_cpu(instances), share))
    return found
