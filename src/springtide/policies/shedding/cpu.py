"""What accuracy costs: a floor, and CPU in proportion to the accuracy (equations 6 to 13 of Stream Economics).

There CPU and accuracy are proportional as they are. Here an epoch has its price without a row, and a row that is shed
has one too: that is the floor of an instance, which machines give away before they share out the rest.

CPU is that of one instance, in cores, above its floor. An instance is one thread: it never has more than one core.
"""

import numpy as np

from springtide.policies.shedding.accuracy import Accuracy
from springtide.policies.shedding.arrays import Floats, Ints
from springtide.policies.shedding.model import Model

CORE = 1.0
"""The most that an instance can use, and the guess for one that nothing is known of."""
UNKNOWN = 1e30
"""Cores for full accuracy, if a task has worked on nothing yet."""


def expected_cpu(model: Model) -> Floats:
    """By task: the CPU of the instance that takes in least, as its rate is the task's accuracy (equation 6).

    The most of it, among instances that take in equally little.
    """
    slowest = model.in_rate == model.least[model.task]
    found = np.zeros(len(model.size))
    np.maximum.at(found, model.task[slowest], (model.cpu - model.floor)[slowest])
    return found


def minimum_obtained_cpu(available: Floats, instances: Ints) -> Floats:
    """By machine: what each of its instances of one priority is sure to get (equation 7)."""
    return available / np.maximum(instances, 1)


def full_cpu(cpu: Floats, share: Floats) -> Floats:
    """What full accuracy costs, if `cpu` is used for this share of it; unknown if that is none."""
    found: Floats = np.divide(cpu, share, out=np.full(len(share), UNKNOWN), where=share > 0)
    return found


def required_cpu(accuracy: Floats, full: Floats) -> Floats:
    """What an accuracy costs (equations 8 to 10): nothing if it is none, a core if nothing is known."""
    return np.minimum(accuracy * full, CORE)


def obtained_accuracy(given: Floats, full: Floats, current: Floats) -> Floats:
    """What accuracy some CPU is good for (equation 11).

    Hopeful about a task that nothing is known of, and about one that seems to need no CPU.
    """
    some = given > 0
    found = np.divide(given, full, out=np.where(some, 1.0, current), where=full > 0)
    return np.where(full == UNKNOWN, some, np.minimum(found, 1.0))


def most_accurate(full: Floats, floor: Floats) -> Floats:
    """The accuracy that one core is good for."""
    left = np.maximum(0.0, CORE - floor)
    return np.where(full == UNKNOWN, 1.0, np.divide(left, full, out=np.ones(len(full)), where=full > left))


def slack(asked: Floats, instances: Ints, available: Floats) -> Floats:
    """By machine: the cores that instances of one priority ask for beyond those that they are sure of (12 and 13).

    `asked` is the sum of what they ask for, beyond what their minima take.
    """
    return asked - instances * minimum_obtained_cpu(available, instances)


def full_costs(model: Model, accuracy: Accuracy, warming: Ints) -> Floats:
    """By task: what full accuracy costs an instance, unless it is unknown.

    What was known before stands in for a task that works on nothing now, as all of it was shed, and for one of which an
    instance warms up. Otherwise the one would come back at full accuracy as soon as there is any CPU, and
    the other, which takes in little yet, would seem to need a core.
    """
    found = full_cpu(expected_cpu(model), accuracy.share)
    unclear = {*np.flatnonzero(accuracy.share <= 0).tolist(), *warming.tolist()}
    for task in unclear:
        found[task] = model.known_cpu.get(model.graph.names[task], found[task])
    return found
