"""All non-null values of a column as a list in ascending order, or each of them once; NaN is the greatest."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, flatten, lengths, require, segment_lists, sort_within
from springtide.state.aggregates.distinct import unique_lists
from springtide.state.aggregates.ordering import ORDERED, has_order
from springtide.state.keys import canonical


@dataclass(frozen=True)
class Collect:
    column: str
    distinct: bool = False

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(kind is not None and has_order(kind), "collect", self.column, kind, ORDERED)
        return [pa.list_(kind)]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return self.accumulator(kind)[0]

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        groups = np.repeat(np.arange(len(starts)), lengths(starts, rows))
        return [self._lists(canonical(values), groups, len(starts))]

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        values, groups = flatten(parts[0], starts)
        return [self._lists(values, groups, len(starts))]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return parts[0]

    def _lists(self, values: pa.Array, groups: Starts, keys: int) -> pa.Array:
        if self.distinct:
            return unique_lists(values, groups, keys)
        valid = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        values, groups = values.take(pa.array(valid)), groups[valid]
        order = sort_within(values, groups, descending=False)
        return segment_lists(values, order, groups[order], keys)
