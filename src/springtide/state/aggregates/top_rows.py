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
    Place,
    best_rows,
    has_order,
    largest_first,
    place_in_group,
    smallest_first,
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
        named = all(isinstance(name, str) for name in self.shown)
        if not self.shown or not named or len(set(self.shown)) < len(self.shown):
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
        order, ranks = best_rows(groups, [_place(rows.field(by.column), by) for by in self.by], self.k)
        left = {name: canonical(rows.field(name).take(pa.array(order))) for name in self.columns}
        # Which of equal rows come first, and stay, is looked into for those that are left.
        final, _ = best_rows(ranks, [_place(column, By(name)) for name, column in left.items()], len(order))
        groups = groups[order]  # Rows of one rank are of one group.
        if not self.ties:
            final = final[place_in_group(groups[final]) < self.k]
        return segment_lists(_struct(left), final, groups[final], keys)


def _place(values: pa.Array, by: By) -> Place:
    """The places of rows in the order of a column."""
    order = smallest_first if by.smallest_first else largest_first
    return lambda rows: order(values.take(pa.array(rows)))


def _struct(columns: dict[str, pa.Array]) -> pa.StructArray:
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)
