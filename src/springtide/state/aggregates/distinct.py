"""How many different non-null values a column has, exactly.

The values themselves are the state: a key with many different values has a large state, rewritten
whenever that key changes. For such data, key by the value as well and count.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, flatten, lengths, require, segment_lists
from springtide.state.aggregates.ordering import has_order, smallest_first
from springtide.state.keys import canonical
from springtide.state.order import order_within


@dataclass(frozen=True)
class Distinct:
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and has_order(kind),
            "distinct",
            self.column,
            kind,
            "numbers, strings, binary or times",
        )
        return [pa.list_(kind)]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return pa.int64()

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        groups = np.repeat(np.arange(len(starts)), lengths(starts, rows))
        return [unique_lists(canonical(values), groups, len(starts))]

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        values, groups = flatten(parts[0], starts)
        return [unique_lists(values, groups, len(starts))]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return pc.list_value_length(parts[0]).cast(pa.int64())


def unique_lists(values: pa.Array, groups: Starts, keys: int) -> pa.Array:
    """One list a key of its different non-null values, ascending; `groups` numbers each value's key."""
    if values.null_count:
        valid = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        values, groups = values.take(pa.array(valid)), groups[valid]
    numbers = smallest_first(values)
    order = order_within(groups, numbers)
    groups, numbers = groups[order], numbers[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (groups[1:] != groups[:-1]) | (numbers[1:] != numbers[:-1])
    return segment_lists(values, order[fresh], groups[fresh], keys)
