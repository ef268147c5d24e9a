"""How far a sum of values may lie from its estimate, as the values differ.

Student's interval is right for values without skew. A few skewed values show less of their spread than there is: the
large ones are rare, and mostly unseen. How much that matters is told by skew² / n, for n seen values: by Cochran's rule
(Sampling Techniques, 1977) Student's interval is good below 1/25. Here, on the side to which the values are skewed,

    reach = Student's reach · (1 + farther · skew² / n)

In a sum the number of rows is open too, and hardly skewed. Third moments of independent parts add up as variances do,
so the skew² of all is that of the values times share³, with `share` the values' part of the variance. Too few values
tell nothing, and nothing is said.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from springtide.state.aggregates.sample import Floats, Moments, ShedRows, ratio, student

ENOUGH = 20
"""Fewer values than this do not show how large others may be."""
ENOUGH_EQUAL = 60
"""As many values, all equal, leave no more than one in twenty that differs: the rule of three, 3 / 60."""
_NOISE = 1e-12
"""Differences of sums that are smaller than this, next to the sums, may be rounding: they may be there or not."""


@dataclass(frozen=True)
class Spread:
    """By key: how far the sum of values less their mean may lie from its estimate, and if that is known."""

    reach: Floats
    """Student's."""
    lean: Floats
    """The skew of the seen values over the root of their number."""
    known: npt.NDArray[np.bool_]

    def below(self, farther: float, besides: Floats | float = 0.0) -> Floats:
        """How far it may lie below, if something without skew reaches as far as `besides` on its own."""
        return self._reach(np.minimum(self.lean, 0.0), farther, besides)

    def above(self, farther: float, besides: Floats | float = 0.0) -> Floats:
        """How far it may lie above, if something without skew reaches as far as `besides` on its own."""
        return self._reach(np.maximum(self.lean, 0.0), farther, besides)

    def _reach(self, lean: Floats, farther: float, besides: Floats | float) -> Floats:
        both = np.hypot(self.reach, besides)
        share = ratio(self.reach, both) ** 2
        return both * (1.0 + farther * lean**2 * share**3)


def spread(shed: ShedRows, moments: Moments, mean: Floats) -> Spread:
    """What the spread of the seen values says of the unseen ones, around this mean."""
    values, some_shed = shed.effective, shed.variance > 0
    squares = moments.second - 2 * mean * moments.first + mean**2 * shed.variance
    noise = _NOISE * moments.second
    equal, squares = squares <= noise, np.maximum(squares, noise)
    deviation = np.where(some_shed, np.sqrt(squares * ratio(values, values - 1.0)), 0.0)
    enough = values >= np.where(equal, ENOUGH_EQUAL, ENOUGH)
    known = ~some_shed | (enough & np.isfinite(deviation))
    return Spread(student(values - 1.0) * deviation, _lean(shed, moments, mean, squares), known)


def _lean(shed: ShedRows, moments: Moments, mean: Floats, squares: Floats) -> Floats:
    """The skew of the seen values over the root of their number, from -1 to 1: one value that outweighs all others."""
    cubes = moments.third - 3 * mean * moments.second + 3 * mean**2 * moments.first - mean**3 * shed.variance
    noise = _NOISE * (np.abs(moments.third) + 3 * np.abs(mean) * moments.second)
    skew = np.where(np.abs(cubes) > noise, ratio(cubes * np.sqrt(shed.variance), squares**1.5), 0.0)
    return np.clip(ratio(skew, np.sqrt(shed.effective)), -1.0, 1.0)
