"""Where a key lies: its position on the ring, and the slice that position falls in.

A key's slice is `pmod(xxhash64(key), S)`. Its *position* is the same hash rotated so that the
slice becomes the most significant bits: positions sort by slice first, so one sorted run holds
each slice as one contiguous range, and one binary search serves all slices of an instance.
"""

import numpy as np
import numpy.typing as npt

from springtide.errors import BadValue

Positions = npt.NDArray[np.uint64]

DEFAULT_SLICES = 128
MAX_SLICES = 1 << 15


def slice_bits(slices: int) -> int:
    """How many bits a slice id takes; slices must be a power of two."""
    if not 1 <= slices <= MAX_SLICES or slices & (slices - 1):
        raise BadValue(f"the number of slices must be a power of two from 1 to {MAX_SLICES}, not {slices}")
    return slices.bit_length() - 1


def positions(hashes: npt.NDArray[np.int64], slices: int) -> Positions:
    """The ring positions of keys with these 64-bit hashes."""
    bits = slice_bits(slices)
    unsigned = hashes.view(np.uint64)
    if bits == 0:
        return unsigned
    return (unsigned >> np.uint64(bits)) | (unsigned << np.uint64(64 - bits))


def slice_of(positions: Positions, slices: int) -> npt.NDArray[np.int64]:
    """The slice each position falls in."""
    bits = slice_bits(slices)
    if bits == 0:
        return np.zeros(len(positions), np.int64)
    return (positions >> np.uint64(64 - bits)).astype(np.int64)


def slice_starts(sorted_positions: Positions, slices: int) -> npt.NDArray[np.int64]:
    """For sorted positions, the row at which each slice starts, and the end: S + 1 offsets."""
    bits = slice_bits(slices)
    firsts = np.arange(slices, dtype=np.uint64) << np.uint64(64 - bits) if bits else np.zeros(1, np.uint64)
    return np.append(np.searchsorted(sorted_positions, firsts), len(sorted_positions)).astype(np.int64)
