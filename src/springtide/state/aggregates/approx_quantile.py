"""The number below which a share of a column's numbers lies, about; exact as long as they are few.

Nulls and NaN do not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.state.aggregates.base import Starts, require, segment_lists
from springtide.state.aggregates.decimals import doubles, is_number
from springtide.state.aggregates.sketched import Sketched, is_sketched
from springtide.state.aggregates.sketches import QuantileSketch

_NOISE_DIGITS = 9
"""7 % of 100 numbers are seven, though 0.07 times 100 is a little more than 7."""


@dataclass(frozen=True)
class ApproxQuantile(Sketched):
    column: str
    shares: tuple[float, ...]
    sketch: QuantileSketch
    one: bool
    """A number is the result, and not a list of one for each share."""

    def __post_init__(self) -> None:
        fine = [not isinstance(q, bool) and isinstance(q, int | float) and 0 <= q <= 1 for q in self.shares]
        if not fine or not all(fine):
            expected = "a share from 0 to 1, or several"
            raise BadValue(f"approx_quantile of column {self.column!r}: expected {expected}, got q={self.shares}")

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        expected = "integers, floating-point numbers or decimals"
        require(is_number(kind), "approx_quantile", self.column, kind, expected)
        return [pa.list_(pa.float64()), pa.binary()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return pa.float64() if self.one else pa.list_(pa.float64())

    @property
    def few(self) -> int:
        return self.sketch.size

    def lists(self, values: pa.Array, groups: Starts, keys: int) -> pa.Array:
        decimals = pa.types.is_decimal(values.type)
        numbers = doubles(values) if decimals else values.cast(pa.float64(), safe=False)
        counted = pc.fill_null(pc.invert(pc.is_nan(numbers)), False).to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(counted)
        return segment_lists(numbers, kept, groups[kept], keys)

    def readable(self, values: pa.Array) -> npt.NDArray[np.float64]:
        return np.array(values.to_numpy())  # The library takes arrays that may be written to.

    def made(self, sketches: Sequence[bytes], values: npt.NDArray[np.float64]) -> bytes:
        return self.sketch.made(sketches, values)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        found, none = self._exact(parts[0])
        many = is_sketched(parts[1])
        if many.any():
            found[many] = [self.sketch.quantiles(sketch, self.shares) for sketch in parts[1].drop_null().to_pylist()]
        none &= ~many
        if self.one:
            return pa.array(found[:, 0], mask=none)
        offsets = np.arange(len(found) + 1) * len(self.shares)
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), found.ravel(), mask=pa.array(none))

    def _exact(self, lists: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """By key and share: the least number that at least this share does not exceed; and which keys have none."""
        sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        numbers, starts = lists.flatten().to_numpy(), np.cumsum(sizes) - sizes
        found = np.zeros((len(sizes), len(self.shares)))
        for size in np.unique(sizes[sizes > 0]):
            keys = np.flatnonzero(sizes == size)
            ordered = np.sort(numbers[starts[keys, None] + np.arange(size)])
            ranks = np.ceil(np.round(np.multiply(self.shares, size), _NOISE_DIGITS)).astype(np.int64)
            found[keys] = ordered[:, np.maximum(ranks - 1, 0)]
        return found, sizes == 0
