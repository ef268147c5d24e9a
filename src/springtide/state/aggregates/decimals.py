"""Sums and means of decimals: exact, and of the types that Spark gives them."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Overflowed, Starts, lengths
from springtide.state.aggregates.division import divided

DIGITS = 38
"""The most that Spark's decimals have."""
_WIDEST = 76
_MORE_DIGITS, _MORE_PLACES = 10, 4
_MEAN_DIGITS = DIGITS + _MORE_DIGITS + _MORE_PLACES


def is_number(kind: pa.DataType | None) -> bool:
    """Whether values of a type can be added up."""
    t = pa.types
    return kind is not None and (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal128(kind))


def sum_type(kind: pa.DataType) -> pa.DataType:
    """The type of a sum of decimals of this type."""
    return pa.decimal128(min(DIGITS, kind.precision + _MORE_DIGITS), kind.scale)


def total_type(kind: pa.DataType) -> pa.DataType:
    """What a sum is kept in for a mean: it may have more digits than the mean."""
    return pa.decimal256(kind.precision + _MORE_DIGITS, kind.scale)


def mean_type(kind: pa.DataType) -> pa.DataType:
    """The type of a mean of decimals of this type."""
    return pa.decimal128(min(DIGITS, kind.precision + _MORE_PLACES), min(DIGITS, kind.scale + _MORE_PLACES))


def add_decimals(values: pa.Array, starts: Starts) -> pa.Array:
    """The sum of each key's non-null values, null for a key with none; Overflowed if one does not fit their type."""
    groups = np.repeat(np.arange(len(starts)), lengths(starts, len(values)))
    rows = pa.table({"key": groups, "value": values.cast(pa.decimal256(_WIDEST, values.type.scale))})
    # In one thread, keys come out in the order in which they came in.
    sums = rows.group_by("key", use_threads=False).aggregate([("value", "sum")])
    return _fitting(sums.column("value_sum").combine_chunks(), values.type)


def mean_of(total: pa.Array, n: pa.Array) -> pa.Array:
    """Sums over counts, rounded half away from zero; null where the sum is."""
    kind = mean_type(pa.decimal128(total.type.precision - _MORE_DIGITS, total.type.scale))
    counts = np.maximum(n.to_numpy(zero_copy_only=False), 1).astype(np.uint64)
    return _fitting(divided(total.cast(pa.decimal256(_MEAN_DIGITS, kind.scale)), counts), kind)


def doubles(values: pa.Array) -> pa.Array:
    """The nearest doubles of decimals that have up to 15 digits; of others the last digit may differ."""
    units = values.view(pa.decimal128(values.type.precision, 0)).cast(pa.float64(), safe=False)
    return pc.divide(units, 10.0**values.type.scale)


def _fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers in the type that they were declared to have."""
    values = values.cast(pa.decimal256(_WIDEST, values.type.scale))
    limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), values.type)
    beyond = np.flatnonzero(pc.fill_null(pc.greater_equal(pc.abs(values), limit), False))
    if len(beyond):
        raise Overflowed(int(beyond[0]), f"DECIMAL({kind.precision}, {kind.scale})")
    return values.cast(kind)
