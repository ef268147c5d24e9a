"""Aggregates that know that rows were shed: scaled up, with a 95 % confidence interval and the accuracy reached.

Each gives four columns: NAME, NAME_low, NAME_high and NAME_accuracy. Where nothing was shed they are exact: the bounds
equal the value, and the accuracy is 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.aggregates.base import Aggregate, Starts, reduce_segments

LOW, HIGH, ACCURACY = "_low", "_high", "_accuracy"
SUFFIXES = ("", LOW, HIGH, ACCURACY)


@dataclass(frozen=True)
class Estimates:
    """By key: an estimate, its bounds, and the share of offered rows that was seen."""

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
        return [reduce_segments(np.add, part, starts, 0, part.type) for part in parts]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return self.estimate(parts).value


def result_names(name: str, aggregate: Aggregate) -> list[str]:
    """The columns that an aggregate adds to the output."""
    return [name + suffix for suffix in SUFFIXES] if isinstance(aggregate, Estimated) else [name]


def result_fields(name: str, aggregate: Aggregate, kind: pa.DataType | None) -> list[pa.Field]:
    """The same, with their types."""
    kinds = [aggregate.result(kind)] * 3 + [pa.float64()]
    return [pa.field(n, k) for n, k in zip(result_names(name, aggregate), kinds, strict=False)]


def summarise(aggregate: Aggregate, values: pa.Array | None, rows: int, starts: Starts, kept: float) -> list[pa.Array]:
    """An aggregate's accumulators of raw values; only estimates ask which share of rows is left."""
    if isinstance(aggregate, Estimated):
        return aggregate.weighted(values, rows, starts, kept)
    return aggregate.partial(values, rows, starts)


def results(name: str, aggregate: Aggregate, parts: list[pa.Array]) -> Mapping[str, pa.Array]:
    """An aggregate's output columns."""
    if not isinstance(aggregate, Estimated):
        return {name: aggregate.finish(parts)}
    found = aggregate.estimate(parts)
    return {name: found.value, name + LOW: found.low, name + HIGH: found.high, name + ACCURACY: found.accuracy}


def whole(seen: pa.Array, unseen: npt.NDArray[np.float64], rounding: np.ufunc) -> npt.NDArray[np.int64]:
    """What was seen plus a rounded number; numbers beyond 64 bits end at the limit."""
    limit = float(2**62)
    # Noise of the last digit must not push a bound over the number it stands on.
    near = np.where(np.abs(unseen - np.rint(unseen)) < 1e-6, np.rint(unseen), unseen)
    more = rounding(np.clip(np.nan_to_num(near), -limit, limit)).astype(np.int64)
    return seen.to_numpy(zero_copy_only=False) + more  # type: ignore[no-any-return]
