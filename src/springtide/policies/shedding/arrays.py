"""Columns of numbers: a cycle looks at thousands of tasks at once."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def floats(values: object) -> Floats:
    """What is missing becomes NaN."""
    return np.array(values, dtype=np.float64)


def ints(values: object) -> Ints:
    return np.array(values, dtype=np.intp)


def lowest(values: Floats, groups: Ints, size: int, at_most: float = np.inf) -> Floats:
    """By group: the least of its values, and for one without any `at_most`."""
    found = np.full(size, at_most)
    np.minimum.at(found, groups, values)
    return found


def highest(values: Floats, groups: Ints, size: int) -> Floats:
    """By group: the most of its values, which are not negative; 0 for one without any."""
    found = np.zeros(size)
    np.maximum.at(found, groups, values)
    return found


def total(values: Floats, groups: Ints, size: int) -> Floats:
    """By group: the sum of its values."""
    found = np.bincount(groups, weights=values, minlength=size)
    return found.astype(np.float64, copy=False)  # Without a group there are no weights either, and it counts.


def sound(values: Floats) -> bool:
    """Whether all are numbers and none is negative."""
    return bool(((values >= 0) & (values < np.inf)).all())
