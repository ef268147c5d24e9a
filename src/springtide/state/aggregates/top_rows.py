"""The first k rows by some columns, as a list of structs; rows with a null among these columns do not count."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.state.aggregates.base import Starts, flatten, lengths, require, segment_lists
from springtide.state.aggregates.ordering import (
    ORDERED,
    By,
    has_order,
    largest_first,
    leading_rows,
    place_in_group,
    place_of_last,
    smallest_first,
    sorted_rows,
)
from springtide.state.keys import canonical


@dataclass(frozen=True)
class TopRows:
    k: int
    by: tuple[By, ...]
    shown: tuple[str, ...]
    """The columns of the result."""
    ties: bool = False
    """All rows that equal the k-th in what they are ordered by, and not k rows at most."""

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise BadValue(f"top_rows: k must be at least 1, not {self.k}")
        if not self.shown or len(set(self.shown)) < len(self.shown):
            raise BadValue(f"top_rows columns={self.shown!r}: expected the names of one or more columns, each once")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(by.column for by in self.by), *self.shown]))

    @property
    def column(self) -> str:
        return self.by[0].column

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        assert kind is not None
        for field in kind:
            require(has_order(field.type), "top_rows", field.name, field.type, ORDERED)
        return [pa.list_(kind)]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        (rows,) = self.accumulator(kind)
        return pa.list_(pa.struct([rows.value_type.field(name) for name in self.shown]))

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        groups = np.repeat(np.arange(len(starts)), lengths(starts, rows))
        return [self._best(values, groups, len(starts))]

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        rows, groups = flatten(parts[0], starts)
        return [self._best(rows, groups, len(starts))]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        lists, rows = parts[0], parts[0].flatten()
        shown = _struct({name: rows.field(name) for name in self.shown})
        ends = np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))
        return pa.LargeListArray.from_arrays(pa.array(np.append(0, ends), pa.int64()), shown)

    def _best(self, rows: pa.StructArray, groups: Starts, keys: int) -> pa.Array:
        counts = pc.is_valid(rows)
        for by in self.by:
            counts = pc.and_(counts, pc.is_valid(rows.field(by.column)))
        picked = np.flatnonzero(counts.to_numpy(zero_copy_only=False))
        if len(picked) < len(rows):
            rows, groups = rows.take(pa.array(picked)), groups[picked]
        places = [(smallest_first if b.smallest_first else largest_first)(rows.field(b.column)) for b in self.by]
        # A row that has k better ones is out; which of equal ones stay is only looked into for those that are left.
        if self.k == 1:
            order = leading_rows(groups, places)
        else:
            order = sorted_rows(groups, places)
            order = order[self._better(groups[order], [place[order] for place in places]) < self.k]
        left = {name: canonical(rows.field(name).take(pa.array(order))) for name in self.columns}
        groups, final = groups[order], np.arange(len(order))
        if place_in_group(groups).any():
            final = sorted_rows(groups, [*(place[order] for place in places), *map(largest_first, left.values())])
            if not self.ties:
                final = final[place_in_group(groups[final]) < self.k]
        return segment_lists(_struct(left), final, groups[final], keys)

    def _better(self, groups: Starts, places: list[Starts]) -> Starts:
        """For rows in their order: how many rows of its group are better than each."""
        fresh = np.ones(len(groups), np.bool_)
        fresh[1:] = groups[1:] != groups[:-1]
        for place in places:
            fresh[1:] |= place[1:] != place[:-1]
        return place_in_group(groups)[place_of_last(fresh)]


def _struct(columns: dict[str, pa.Array]) -> pa.StructArray:
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)
