"""The k greatest values of a column, greatest first; equal values count each, nulls do not."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.state.aggregates.base import (
    Starts,
    flatten,
    lengths,
    require,
    segment_lists,
    sort_within,
)
from springtide.state.aggregates.ordering import ORDERED
from springtide.state.keys import canonical


@dataclass(frozen=True)
class TopK:
    column: str
    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise BadValue(f"top_k of column {self.column!r}: k must be at least 1, not {self.k}")

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and not pa.types.is_nested(kind),
            "top_k",
            self.column,
            kind,
            ORDERED,
        )
        return [pa.list_(kind)]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return self.accumulator(kind)[0]

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        groups = np.repeat(np.arange(len(starts)), lengths(starts, rows))
        return [self._best(canonical(values), groups, len(starts))]

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        values, groups = flatten(parts[0], starts)
        return [self._best(values, groups, len(starts))]

    def _best(self, values: pa.Array, groups: Starts, keys: int) -> pa.Array:
        valid = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        values, groups = values.take(pa.array(valid)), groups[valid]
        order = sort_within(values, groups, descending=True)
        ordered = groups[order]
        rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, "left")
        kept = rank < self.k
        return segment_lists(values, order[kept], ordered[kept], keys)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return parts[0]
