"""The number of rows, or of the non-null values of a column, of which some were shed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, lengths
from springtide.state.aggregates.estimate import Estimated, Estimates, fitting, whole
from springtide.state.aggregates.interval import count_interval
from springtide.state.aggregates.sample import ShedRows, Z

COUNTS = [pa.int64(), pa.float64(), pa.float64()]
"""Seen, expected to be unseen, the variance of that."""


@dataclass(frozen=True)
class EstimatedCount(Estimated):
    column: str | None = None

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        # A column's nulls are no values but rows, and accuracy is about rows.
        return COUNTS if self.column is None else [*COUNTS, pa.int64(), pa.float64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return pa.int64()

    def weighted(self, values: pa.Array | None, rows: int, starts: Starts, kept: float) -> list[pa.Array]:
        of_rows = lengths(starts, rows)
        if values is None:
            return counts(of_rows, kept)
        return [*counts(present(values, starts), kept), *counts(of_rows, kept)[:2]]

    def estimate(self, parts: list[pa.Array]) -> Estimates:
        shed = shed_of(parts)
        low, high = count_interval(shed)
        if self.column is not None:
            # Without a single value seen, some may still be among the unseen rows: this is the most of them.
            rows, unseen = (part.to_numpy(zero_copy_only=False) for part in parts[3:5])
            high = np.where(shed.seen == 0, Z**2 * unseen / np.maximum(rows, 1), high)
        fitting(parts[0], shed.unseen)
        value = whole(parts[0], shed.unseen, np.rint)
        # The truth is a whole number, so bounds may be rounded inwards, as long as the estimate stays between them.
        least = np.minimum(whole(parts[0], low, np.ceil), value)
        most = np.maximum(whole(parts[0], high, np.floor), value)
        share = accuracy(*(parts[:2] if self.column is None else parts[3:5]))
        return Estimates(pa.array(value), pa.array(least), pa.array(most), share)


def present(values: pa.Array, starts: Starts) -> npt.NDArray[np.int64]:
    """How many values each key has that are not null."""
    if not len(starts):
        return np.empty(0, np.int64)
    return np.add.reduceat(pc.is_valid(values).to_numpy(zero_copy_only=False).astype(np.int64), starts)


def counts(seen: npt.NDArray[np.int64], kept: float) -> list[pa.Array]:
    """The accumulators of a count of rows, each kept with this probability."""
    return [pa.array(n, kind) for n, kind in zip((seen, *scaled(seen, kept)), COUNTS, strict=True)]


def scaled(seen: npt.NDArray[np.generic], kept: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """What is expected to be unseen beside this, and the weight of this in the variance."""
    if kept == 1.0:
        nothing = np.zeros(len(seen))
        return nothing, nothing
    lost = seen.astype(np.float64) * ((1.0 - kept) / kept)
    return lost, lost / kept


def shed_of(parts: list[pa.Array]) -> ShedRows:
    seen, unseen, variance = (part.to_numpy(zero_copy_only=False) for part in parts[:3])
    return ShedRows(seen.astype(np.float64), unseen, variance)


def accuracy(rows: pa.Array, unseen: pa.Array) -> pa.Array:
    """The share of offered rows that was seen."""
    seen = rows.to_numpy(zero_copy_only=False).astype(np.float64)
    return pa.array(seen / (seen + unseen.to_numpy(zero_copy_only=False)))
