"""The least or the greatest value of a column; nulls are skipped, NaN is greater than any number."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, lengths, reduce_segments, require, sort_within
from springtide.state.aggregates.ordering import ORDERED
from springtide.state.keys import canonical


@dataclass(frozen=True)
class Extreme:
    column: str
    greatest: bool

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and not pa.types.is_nested(kind) and not pa.types.is_boolean(kind),
            "max" if self.greatest else "min",
            self.column,
            kind,
            ORDERED,
        )
        return [kind]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return self.accumulator(kind)[0]

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        return self.combine([canonical(values)], starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        (values,) = parts
        kind = values.type
        if pa.types.is_floating(kind):
            # fmin passes over NaN and fmax would: only a key with nothing else has NaN as its least value
            ufunc, neutral = (np.maximum, float("-inf")) if self.greatest else (np.fmin, float("nan"))
            return [reduce_segments(ufunc, values, starts, neutral, kind)]
        if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            return [self._by_integer(values, starts)]
        return [self._by_sorting(values, starts)]

    def _by_integer(self, values: pa.Array, starts: Starts) -> pa.Array:
        width = values.type.bit_width
        unsigned = pa.types.is_unsigned_integer(values.type)
        raw = values.view(f"{'u' if unsigned else ''}int{width}")
        limits = np.iinfo(f"{'u' if unsigned else ''}int{width}")
        ufunc, neutral = (np.maximum, limits.min) if self.greatest else (np.minimum, limits.max)
        return reduce_segments(ufunc, raw, starts, int(neutral), raw.type).view(values.type)

    def _by_sorting(self, values: pa.Array, starts: Starts) -> pa.Array:
        groups = np.repeat(np.arange(len(starts)), lengths(starts, len(values)))
        valid = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        groups, values = groups[valid], values.take(pa.array(valid))
        order = sort_within(values, groups, descending=self.greatest)
        present, first = np.unique(groups[order], return_index=True)
        picks = np.full(len(starts), -1, np.int64)
        picks[present] = order[first]
        return values.take(pa.array(picks, mask=picks < 0))

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return parts[0]
