"""The sum and the mean of a numeric column of which some rows were shed; nulls are skipped."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, lengths, require
from springtide.state.aggregates.estimate import Estimated, Estimates, fitting, whole
from springtide.state.aggregates.estimated_count import COUNTS, accuracy, counts, present, scaled, shed_of
from springtide.state.aggregates.interval import mean_interval, sum_interval
from springtide.state.aggregates.mean import Mean
from springtide.state.aggregates.sample import Moments
from springtide.state.aggregates.total import Sum

_TOTAL = 5
"""Where the seen sum stands among the accumulators: after the values' counts and the rows'."""


@dataclass(frozen=True)
class _OfValues(Estimated):
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            not pa.types.is_decimal(kind),
            "estimate=True",
            self.column,
            kind,
            "integers or floating-point numbers: cast decimals to DOUBLE",
        )
        return [*COUNTS, pa.int64(), pa.float64(), Sum(self.column).result(kind), *[pa.float64()] * 4]

    def weighted(self, values: pa.Array | None, rows: int, starts: Starts, kept: float) -> list[pa.Array]:
        assert values is not None
        head = [*counts(present(values, starts), kept), *counts(lengths(starts, rows), kept)[:2]]
        seen = pc.fill_null(values.cast(Sum(self.column).result(values.type)), 0)
        with np.errstate(over="ignore", invalid="ignore"):
            totals = add_segments(seen, starts).to_numpy(zero_copy_only=False)
            if kept == 1.0:
                nothing = pa.array(np.zeros(len(starts)))
                return [*head, pa.array(totals, seen.type), *[nothing] * 4]
            numbers = seen.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            unseen, first = scaled(totals, kept)
            _, second = scaled(_sums(numbers**2, starts), kept)
            _, third = scaled(_sums(numbers**3, starts), kept)
        return [*head, pa.array(totals, seen.type), *map(pa.array, (unseen, first, second, third))]


@dataclass(frozen=True)
class EstimatedSum(_OfValues):
    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return Sum(self.column).result(kind)

    def estimate(self, parts: list[pa.Array]) -> Estimates:
        seen, moments = parts[_TOTAL], _moments(parts)
        with np.errstate(all="ignore"):
            bounds = sum_interval(shed_of(parts), moments)
            if pa.types.is_integer(seen.type):
                fitting(seen, moments.unseen)
                value = whole(seen, moments.unseen, np.rint)
                least = np.minimum(whole(seen, bounds.low, np.ceil), value)
                most = np.maximum(whole(seen, bounds.high, np.floor), value)
            else:
                total = seen.to_numpy(zero_copy_only=False)
                value, least, most = total + moments.unseen, total + bounds.low, total + bounds.high
        return _estimates(parts, value, least, most, bounds.known)


@dataclass(frozen=True)
class EstimatedMean(_OfValues):
    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return Mean(self.column).result(kind)

    def estimate(self, parts: list[pa.Array]) -> Estimates:
        shed, moments = shed_of(parts), _moments(parts)
        with np.errstate(all="ignore"):
            total = parts[_TOTAL].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) + moments.unseen
            mean = total / (shed.seen + shed.unseen)
            bounds = mean_interval(shed, moments, mean)
        return _estimates(parts, mean, bounds.low, bounds.high, bounds.known)


def _sums(values: npt.NDArray[np.generic], starts: Starts) -> npt.NDArray[np.generic]:
    return np.add.reduceat(values, starts) if len(starts) else values


def _moments(parts: list[pa.Array]) -> Moments:
    return Moments(*(part.to_numpy(zero_copy_only=False) for part in parts[_TOTAL + 1 :]))


def _estimates(
    parts: list[pa.Array],
    value: npt.NDArray[np.generic],
    low: npt.NDArray[np.generic],
    high: npt.NDArray[np.generic],
    known: npt.NDArray[np.bool_],
) -> Estimates:
    """Null for keys that have had nothing but nulls; bounds are null too where the seen values tell too little."""
    none = parts[0].to_numpy(zero_copy_only=False) == 0
    least, most = (pa.array(bound, mask=none | ~known) for bound in (low, high))
    return Estimates(pa.array(value, mask=none), least, most, accuracy(*parts[3:5]))
