"""What a key's seen rows tell of those that were shed.

A row is seen with the known probability p of its epoch, independently of all others. What the seen rows tell is
kept as sums over them, so epochs may differ in p and accumulators just add up.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Z = 1.959964
"""95 % of a normal distribution lie within 1.96 standard deviations of its mean."""
_DEGREES = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 60, 120, np.inf])
_STUDENT = np.array(
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.131, 2.086, 2.042, 2.0, 1.98, Z]
)


@dataclass(frozen=True)
class ShedRows:
    """By key: rows seen, how many are expected to be unseen (Horvitz-Thompson), and the variance of that.

    The second is Σ (1 − p)/p over the seen rows, the third Σ (1 − p)/p².
    """

    seen: Floats
    unseen: Floats
    variance: Floats

    @property
    def effective(self) -> Floats:
        """How many rows of one and the same p would tell as much; rows that were sure to be seen tell nothing."""
        return np.where(self.variance > self.unseen, ratio(self.unseen**2, self.variance - self.unseen), self.seen)

    @property
    def share(self) -> Floats:
        """The share of rows that was seen."""
        return np.where(self.unseen > 0, ratio(self.seen, self.seen + self.unseen), 1.0)


@dataclass(frozen=True)
class Moments:
    """By key: the expected unseen sum Σ x(1 − p)/p, and Σ xᵏ(1 − p)/p² for k = 1, 2, 3."""

    unseen: Floats
    first: Floats
    second: Floats
    third: Floats


def student(degrees: Floats) -> Floats:
    """Student's 97.5 % point, interpolated in a table."""
    found: Floats = np.interp(1.0 / np.maximum(degrees, 1.0), (1.0 / _DEGREES)[::-1], _STUDENT[::-1])
    return found


def ratio(a: Floats, b: Floats) -> Floats:
    """a / b, and 0 where b is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Floats = np.where(b != 0, np.divide(a, b), 0.0)
    return found
