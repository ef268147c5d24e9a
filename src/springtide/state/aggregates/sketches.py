"""Sketches of Apache DataSketches, as bytes. The library is known here alone."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from datasketches import cpc_sketch, cpc_union, kll_doubles_sketch

from springtide.errors import BadValue

LEAST_ERROR, MOST_ERROR = 0.0005, 0.2
_COUNTING_ERROR = 0.6931
"""ln 2: the standard error of merged CPC sketches times the root of the number of their bins."""
_BINS_LOG2 = range(4, 22)
_QUANTILE_SIZES = range(8, 1 << 14)


@dataclass(frozen=True)
class CountingSketch:
    """How many different values there are (Lang, "Back to the Future", 2017: CPC). A function of these values."""

    bins_log2: int

    @classmethod
    def within(cls, aggregate: str, error: float) -> "CountingSketch":
        """The smallest one with a relative standard error of this at most."""
        _check(aggregate, error)
        return cls(next(n for n in _BINS_LOG2 if _COUNTING_ERROR / 2 ** (n / 2) <= error))

    def made(self, sketches: Sequence[bytes], values: Sequence[int | str]) -> bytes:
        """One sketch of all values of some sketches, and of more values."""
        if len(sketches) == 1:
            # It is a union already, so its estimate does not depend on the order of what is added.
            return self._added(cpc_sketch.deserialize(sketches[0]), values) if len(values) else sketches[0]
        union = cpc_union(self.bins_log2)
        for sketch in sketches:
            union.update(cpc_sketch.deserialize(sketch))
        union.update(cpc_sketch.deserialize(self._added(cpc_sketch(self.bins_log2), values)))
        return bytes(union.get_result().serialize())

    def count(self, sketch: bytes) -> int:
        """The estimate."""
        return round(float(cpc_sketch.deserialize(sketch).get_estimate()))

    def _added(self, sketch: cpc_sketch, values: Sequence[int | str]) -> bytes:
        deque(map(sketch.update, values), maxlen=0)
        return bytes(sketch.serialize())


@dataclass(frozen=True)
class QuantileSketch:
    """Numbers by their rank (Karnin, Lang, Liberty, 2016: KLL). What is kept beyond `size` numbers is drawn by lot."""

    size: int

    @classmethod
    def within(cls, aggregate: str, error: float) -> "QuantileSketch":
        """The smallest one whose ranks are this far off at most, in 99 of 100 cases."""
        _check(aggregate, error)

        def exactness(size: int) -> float:
            return -float(kll_doubles_sketch.get_normalized_rank_error(size, False))

        return cls(_QUANTILE_SIZES[bisect_left(_QUANTILE_SIZES, -error, key=exactness)])

    def made(self, sketches: Sequence[bytes], values: npt.NDArray[np.float64]) -> bytes:
        """One sketch of all numbers of some sketches, and of more numbers."""
        if len(sketches) == 1 and not len(values):
            return sketches[0]
        total = kll_doubles_sketch(self.size)
        for sketch in sketches:
            total.merge(kll_doubles_sketch.deserialize(sketch))
        total.update(values)
        return bytes(total.serialize())

    def quantiles(self, sketch: bytes, shares: Sequence[float]) -> list[float]:
        """For each share, the least number that at least this share of the numbers does not exceed."""
        numbers = kll_doubles_sketch.deserialize(sketch)
        # The least and the greatest number are exact. The quantiles at 0 and at 1 are not.
        ends: dict[float, Callable[[], float]] = {0: numbers.get_min_value, 1: numbers.get_max_value}
        found = zip(shares, numbers.get_quantiles(shares, True), strict=True)
        return [ends[share]() if share in ends else number for share, number in found]


def _check(aggregate: str, error: float) -> None:
    if isinstance(error, bool) or not isinstance(error, int | float) or not LEAST_ERROR <= error <= MOST_ERROR:
        raise BadValue(f"{aggregate} error={error!r}: expected a share from {LEAST_ERROR} to {MOST_ERROR}")
