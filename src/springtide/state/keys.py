"""Equality of keys, columnar: nulls equal nulls, NaN equals NaN, and -0.0 equals 0.0."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.errors import UnsupportedKey
from springtide.state.wide import wide_type

Indices = npt.NDArray[np.int64]


def check_key_type(column: str, kind: pa.DataType) -> None:
    """Refuse types, such as lists and structs, that can't be compared column-wise."""
    t = pa.types
    fine = (
        t.is_boolean(kind)
        or t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_date(kind)
        or t.is_timestamp(kind)
        or t.is_decimal(kind)
    )
    if not fine:
        raise UnsupportedKey(column, str(kind))


def canonical(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One contiguous array, wide, with a single representation of zero and of NaN."""
    column = column.cast(wide_type(column.type))
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_floating(array.type):
        return array
    zero, nan = pa.scalar(0.0, array.type), pa.scalar(float("nan"), array.type)
    array = pc.if_else(pc.equal(array, zero), zero, array)
    return pc.if_else(pc.is_nan(array), nan, array)


def same(left: list[pa.Array], right: list[pa.Array]) -> npt.NDArray[np.bool_]:
    """Row by row: are the canonical keys in `left` and `right` equal?"""
    result: npt.NDArray[np.bool_] = np.ones(len(left[0]) if left else 0, np.bool_)
    for a, b in zip(left, right, strict=True):
        result &= _same_column(a, b)
    return result


def _same_column(a: pa.Array, b: pa.Array) -> npt.NDArray[np.bool_]:
    equal = _equal_values(a, b)
    if a.null_count == 0 and b.null_count == 0:
        return equal
    a_null, b_null = _is_null(a), _is_null(b)
    return np.where(a_null | b_null, a_null & b_null, equal)


def _equal_values(a: pa.Array, b: pa.Array) -> npt.NDArray[np.bool_]:
    width = _fixed_width(a.type)
    equal: npt.NDArray[np.bool_]
    if width is not None:
        equal = _raw(a, width) == _raw(b, width)
    else:
        equal = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
    return equal


def _is_null(a: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = pc.is_null(a).to_numpy(zero_copy_only=False)
    return nulls


def _fixed_width(kind: pa.DataType) -> int | None:
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or not pa.types.is_primitive(kind):
        return None
    return int(kind.bit_width) // 8


def _raw(a: pa.Array, width: int) -> npt.NDArray[np.generic]:
    """The values' bits: canonical floats then compare as integers, NaN included."""
    if len(a) == 0:
        return np.empty(0, dtype=f"u{width}")
    return np.frombuffer(a.buffers()[1], dtype=f"u{width}")[a.offset : a.offset + len(a)]
