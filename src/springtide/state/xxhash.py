"""Spark's `xxhash64` of a 64-bit integer, for whole columns: one column less to carry to Python."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_SEED = 42
"""Spark's seed, which is also its hash of null."""


def hash_integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """The hashes of 64-bit integers, the same as Spark's."""
    values = pc.fill_null(column, 0) if column.null_count else column
    # In place wherever possible: the column is large and memory is what this costs.
    h = values.to_numpy().view(np.uint64) * _P2
    h = _rotated(h, 31)
    h *= _P1
    h ^= np.uint64(_SEED) + _P5 + np.uint64(8)
    h = _rotated(h, 27)
    h *= _P1
    h += _P4
    for shift, prime in ((33, _P2), (29, _P3)):
        h ^= h >> np.uint64(shift)
        h *= prime
    h ^= h >> np.uint64(32)
    hashes = h.view(np.int64)
    if column.null_count:
        hashes[pc.is_null(column).to_numpy(zero_copy_only=False)] = _SEED
    return hashes


def _rotated(h: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    return (h << np.uint64(bits)) | (h >> np.uint64(64 - bits))
