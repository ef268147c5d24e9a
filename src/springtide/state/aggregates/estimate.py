"""Aggregates that know that rows were shed: scaled up, with a 95 % confidence interval and the accuracy reached.

Each gives four columns: NAME, NAME_low, NAME_high and NAME_accuracy. Where nothing was shed they are exact: the bounds
equal the value, and the accuracy is 1. Where too few values were seen for an interval, the bounds are null.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.aggregates.adding import BITS, LIMIT, add_segments
from springtide.state.aggregates.base import Aggregate, Overflowed, Starts
from springtide.state.aggregates.filtered import unfiltered

LOW, HIGH, ACCURACY = "_low", "_high", "_accuracy"
SUFFIXES = ("", LOW, HIGH, ACCURACY)


@dataclass(frozen=True)
class Estimates:
    """By key: an estimate, its bounds, null where too little is known, and the share of offered rows that was seen."""

    value: pa.Array
    low: pa.Array
    high: pa.Array
    accuracy: pa.Array


class Estimated(ABC):
    """An aggregate over rows that were kept with a known probability each; all of its accumulators are sums."""

    @abstractmethod
    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        """The types of the accumulator's columns for an input of this type."""

    @abstractmethod
    def result(self, kind: pa.DataType | None) -> pa.DataType:
        """The type of the estimate and of its bounds: that of the aggregate without an estimate."""

    @abstractmethod
    def weighted(self, values: pa.Array | None, rows: int, starts: Starts, kept: float) -> list[pa.Array]:
        """Summarise raw values that were each kept with this probability, key by key."""

    @abstractmethod
    def estimate(self, parts: list[pa.Array]) -> Estimates:
        """The estimates of accumulators."""

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        return self.weighted(values, rows, starts, 1.0)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        return [add_segments(part, starts) for part in parts]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return self.estimate(parts).value


def is_estimated(aggregate: Aggregate) -> bool:
    """Whether an aggregate is scaled up for rows that were shed."""
    return isinstance(unfiltered(aggregate), Estimated)


def result_names(name: str, aggregate: Aggregate) -> list[str]:
    """The columns that an aggregate adds to the output."""
    return [name + suffix for suffix in SUFFIXES] if is_estimated(aggregate) else [name]


def result_fields(name: str, aggregate: Aggregate, kind: pa.DataType | None) -> list[pa.Field]:
    """The same, with their types."""
    kinds = [aggregate.result(kind)] * 3 + [pa.float64()]
    return [pa.field(n, k) for n, k in zip(result_names(name, aggregate), kinds, strict=False)]


def summarise(aggregate: Aggregate, values: pa.Array | None, rows: int, starts: Starts, kept: float) -> list[pa.Array]:
    """An aggregate's accumulators of raw values; only estimates ask which share of rows is left."""
    estimated = unfiltered(aggregate)
    if isinstance(estimated, Estimated):
        return estimated.weighted(values, rows, starts, kept)
    return aggregate.partial(values, rows, starts)


def results(name: str, aggregate: Aggregate, parts: list[pa.Array]) -> Mapping[str, pa.Array]:
    """An aggregate's output columns."""
    estimated = unfiltered(aggregate)
    if not isinstance(estimated, Estimated):
        return {name: aggregate.finish(parts)}
    found = estimated.estimate(parts)
    return {name: found.value, name + LOW: found.low, name + HIGH: found.high, name + ACCURACY: found.accuracy}


def whole(seen: pa.Array, unseen: npt.NDArray[np.float64], rounding: np.ufunc) -> npt.NDArray[np.int64]:
    """What was seen plus a rounded number; a bound beyond 64 bits ends at the limit."""
    start: npt.NDArray[np.int64] = seen.to_numpy(zero_copy_only=False)
    # Noise of the last digit must not push a bound over the number it stands on.
    near = np.nan_to_num(np.where(np.abs(unseen - np.rint(unseen)) < 1e-6, np.rint(unseen), unseen))
    more = rounding(near)
    total = start + more
    fits = (more == 0.0) | (np.abs(total) < LIMIT)
    exact = start + np.where(fits, more, 0.0).astype(np.int64)
    return np.where(fits, exact, np.where(total < 0, -LIMIT, LIMIT - 1))


def fitting(seen: pa.Array, unseen: npt.NDArray[np.float64]) -> None:
    """Raise Overflowed if what was seen and what is estimated beside it do not fit 64 bits together."""
    total = np.abs(seen.to_numpy(zero_copy_only=False) + np.nan_to_num(unseen))
    wrapped = np.flatnonzero((unseen != 0.0) & (total >= LIMIT))
    if len(wrapped):
        raise Overflowed(int(wrapped[0]), BITS)
