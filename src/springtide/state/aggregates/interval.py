"""95 % confidence intervals for what was not seen, from what was, key by key.

A row is seen with the known probability p of its epoch, independently of all others. What a key's seen
rows tell is kept as sums over them, so epochs may differ in p and accumulators just add up:

    unseen    Σ (1 − p)/p        the expected number of unseen rows (Horvitz-Thompson)
    variance  Σ (1 − p)/p²       the variance of that

The plain normal interval, estimate ± 1.96 √variance, is poor for keys of few rows: seeing little makes it
narrow just when it is low. The functions here hold close to 95 % from a few rows on.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bounds = tuple[Floats, Floats]
Z = 1.959964
"""95 % of a normal distribution lie within so many standard deviations."""
_DEGREES = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 60, 120, np.inf])
_STUDENT = np.array(
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.131, 2.086, 2.042, 2.0, 1.98, Z]
)
_ALONE = 3.0
"""For a single value, whose spread is unknown: it is taken to be the value itself, and this many times that."""
_SHY = 2.0
"""Few values show about half of their skew."""
_MAY_BE_HIDDEN = 1e-6
_HALVINGS = 40


@dataclass(frozen=True)
class Shed:
    """By key: rows seen, how many are expected to be unseen, and the variance of that."""

    seen: Floats
    unseen: Floats
    variance: Floats

    @property
    def effective(self) -> Floats:
        """How many rows of one and the same p would tell as much; rows that were sure to be seen tell nothing."""
        return np.where(self.variance > self.unseen, _ratio(self.unseen**2, self.variance - self.unseen), self.seen)

    @property
    def share(self) -> Floats:
        """The share of rows that was seen."""
        return np.where(self.unseen > 0, _ratio(self.seen, self.seen + self.unseen), 1.0)


def count_interval(shed: Shed) -> Bounds:
    """How many rows may be unseen: all numbers u for which what was seen is no surprise.

    That is (estimate − u)² ≤ z² · the variance *if u were true*, with the mixture of p as it was seen; for one p it is
    Wilson's score interval turned around. A key shows up only once a row of it was seen, so the lower bound
    compares with the expectation given that. Rows that differ much in p tell less of the mixture: z grows.
    """
    unseen, extra = shed.unseen, _ratio(shed.variance, shed.unseen) - (shed.unseen > 0)
    apart = np.clip(1.0 - _ratio(shed.effective, shed.seen), 0.0, 1.0)
    z = Z + apart * (_student(shed.effective) - Z)
    middle = unseen + z**2 * extra / 2
    reach = z * np.sqrt(unseen + unseen * extra + (z * extra / 2) ** 2)
    low, high = np.maximum(middle - reach, 0.0), middle + reach
    hidden = np.flatnonzero((shed.seen > 0) & ((1.0 - shed.share) ** shed.seen > _MAY_BE_HIDDEN))
    low[hidden] = _given_seen(low[hidden], *(a[hidden] for a in (shed.seen, unseen, shed.share, extra, z)))
    return low, high


def _given_seen(low: Floats, seen: Floats, unseen: Floats, share: Floats, extra: Floats, z: Floats) -> Floats:
    """The lower bound for keys that may well have stayed hidden: by halving, as there is no formula."""
    below, above = np.zeros_like(low), low
    for _ in range(_HALVINGS):
        guess = (below + above) / 2
        shown = 1.0 - (1.0 - share) ** (seen + guess)
        fits = (seen + guess) / shown + z * np.sqrt(unseen + guess * extra) >= seen + unseen
        below, above = np.where(fits, below, guess), np.where(fits, guess, above)
    return above


@dataclass(frozen=True)
class Moments:
    """By key: the expected unseen sum Σ x(1 − p)/p, and Σ xᵏ(1 − p)/p² for k = 1, 2, 3."""

    unseen: Floats
    first: Floats
    second: Floats
    third: Floats


def sum_interval(shed: Shed, moments: Moments) -> Bounds:
    """The sum of the unseen values: what their number leaves open, and what their spread does, at right angles.

    The first is the count's own interval times the mean value.
    """
    mean = _ratio(moments.first, shed.variance)
    low, high = count_interval(shed)
    fewer, more = (shed.unseen - low) * np.abs(mean), (high - shed.unseen) * np.abs(mean)
    below, above = _spread(shed, moments, mean)
    down = np.hypot(np.where(mean < 0, more, fewer), below)
    up = np.hypot(np.where(mean < 0, fewer, more), above)
    return moments.unseen - down, moments.unseen + up


def mean_interval(shed: Shed, moments: Moments, mean: Floats) -> Bounds:
    """The mean of all values, around its estimate: their number does not matter, their spread does."""
    below, above = (_ratio(side, shed.seen + shed.unseen) for side in _spread(shed, moments, mean))
    return mean - below, mean + above


def _spread(shed: Shed, moments: Moments, mean: Floats) -> Bounds:
    """How far the sum of values less their mean may lie below and above the estimate.

    Student's, as the spread is known from few values; and longer on the side to which they are skewed, where a large
    one may be unseen.
    """
    effective = shed.effective
    known = effective > 1.5
    within = np.maximum(moments.second - 2 * mean * moments.first + mean**2 * shed.variance, 0.0)
    deviation = np.sqrt(np.where(known, within * _ratio(effective, effective - 1.0), moments.second))
    reach = np.where(known, _student(effective - 1.0), _ALONE) * deviation
    cubes = moments.third - 3 * mean * moments.second + 3 * mean**2 * moments.first - mean**3 * shed.variance
    skew = np.where(effective > 2.5, _ratio(cubes * np.sqrt(shed.variance), within**1.5), 0.0)
    shift = np.clip(np.nan_to_num(_SHY * _studentised(skew, shed.share, effective)) * deviation, -reach, reach)
    return reach + np.maximum(-shift, 0.0), reach + np.maximum(shift, 0.0)


def _studentised(skew: Floats, share: Floats, effective: Floats) -> Floats:
    """How far skewed values shift the bounds of a studentised mean of a finite population, in standard deviations.

    Cornish-Fisher's first term, from the bias and the third cumulant of the mean divided by its estimated deviation.
    """
    scale = skew * np.sqrt(_ratio(1.0 - share, effective))
    cumulant = scale * (_ratio(1.0 - 2.0 * share, 1.0 - share) - 3.0)
    return scale / 2 - cumulant / 6 * (Z**2 - 1.0)


def _student(degrees: Floats) -> Floats:
    """Student's 97.5 % point, interpolated in a table."""
    found: Floats = np.interp(1.0 / np.maximum(degrees, 1.0), (1.0 / _DEGREES)[::-1], _STUDENT[::-1])
    return found


def _ratio(a: Floats, b: Floats) -> Floats:
    """a / b, and 0 where b is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Floats = np.where(b != 0, np.divide(a, b), 0.0)
    return found
