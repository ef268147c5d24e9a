"""95 % confidence intervals for what was not seen, from what was, key by key.

The plain normal interval, estimate ± 1.96 √variance, is poor for keys of few rows: seeing little makes it
narrow just when it is low. The functions here hold close to 95 %, or say that too little is known.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from springtide.state.aggregates.sample import Floats, Moments, ShedRows, Z, ratio, student
from springtide.state.aggregates.spread import spread

_FARTHER = {"sum": 28.0, "mean": 13.0}
"""How much farther skewed values reach; calibrated, `docs/shedding.md` tells on which values. More for a sum, as the
mean by which unseen rows are valued is too low just when large values are unseen."""
_MAY_BE_HIDDEN = 1e-6
_HALVINGS = 40


@dataclass(frozen=True)
class Interval:
    """By key: the bounds, and whether enough is known to give them."""

    low: Floats
    high: Floats
    known: npt.NDArray[np.bool_]


def count_interval(shed: ShedRows) -> tuple[Floats, Floats]:
    """How many rows may be unseen: all numbers u for which what was seen is no surprise.

    That is (estimate − u)² ≤ z² · the variance *if u were true*, with the mixture of p as it was seen; for one p it is
    Wilson's score interval turned around. A key shows up only once a row of it was seen, so the lower bound
    compares with the expectation given that. Rows that differ much in p tell less of the mixture: z grows.
    """
    unseen, extra = shed.unseen, ratio(shed.variance, shed.unseen) - (shed.unseen > 0)
    apart = np.clip(1.0 - ratio(shed.effective, shed.seen), 0.0, 1.0)
    z = Z + apart * (student(shed.effective) - Z)
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


def sum_interval(shed: ShedRows, moments: Moments) -> Interval:
    """The sum of the unseen values: what their number leaves open, and what their spread does, at right angles.

    The first is the count's own interval times the mean value.
    """
    mean = ratio(moments.first, shed.variance)
    low, high = count_interval(shed)
    fewer, more = (shed.unseen - low) * np.abs(mean), (high - shed.unseen) * np.abs(mean)
    values = spread(shed, moments, mean)
    down = values.below(_FARTHER["sum"], np.where(mean < 0, more, fewer))
    up = values.above(_FARTHER["sum"], np.where(mean < 0, fewer, more))
    return Interval(moments.unseen - down, moments.unseen + up, values.known)


def mean_interval(shed: ShedRows, moments: Moments, mean: Floats) -> Interval:
    """The mean of all values, around its estimate: their number does not matter, their spread does."""
    values, rows = spread(shed, moments, mean), shed.seen + shed.unseen
    below, above = values.below(_FARTHER["mean"]), values.above(_FARTHER["mean"])
    return Interval(mean - ratio(below, rows), mean + ratio(above, rows), values.known)
