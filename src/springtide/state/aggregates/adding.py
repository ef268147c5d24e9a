"""Sums of integers and decimals, key by key, that are exact or an error: they never wrap."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Overflowed, Starts, lengths, reduce_segments
from springtide.state.aggregates.decimals import add_decimals

LIMIT = 1 << 63
BITS = "64 bits"
_HALF = 32


def add_segments(values: pa.Array, starts: Starts) -> pa.Array:
    """The sum of each key's non-null values, null for a key with none; Overflowed if one does not fit."""
    if pa.types.is_decimal(values.type):
        return add_decimals(values, starts)
    if pa.types.is_integer(values.type) and len(starts):
        filled = pc.fill_null(values, 0) if values.null_count else values
        check_sums(filled.to_numpy(zero_copy_only=False), starts)
    return reduce_segments(np.add, values, starts, 0, values.type)


def check_sums(values: npt.NDArray[np.int64], starts: Starts) -> None:
    """Raise Overflowed if the sum of some key's integers does not fit 64 bits."""
    most = max(-int(values.min()), int(values.max()))
    if most * int(lengths(starts, len(values)).max()) < LIMIT:
        return
    # In two halves, neither of which can wrap with less than 2^31 rows.
    low = np.add.reduceat(values & ((1 << _HALF) - 1), starts)
    high = np.add.reduceat(values >> _HALF, starts) + (low >> _HALF)
    wrapped = np.flatnonzero((high < -(1 << _HALF - 1)) | (high >= 1 << _HALF - 1))
    if len(wrapped):
        raise Overflowed(int(wrapped[0]), BITS)
