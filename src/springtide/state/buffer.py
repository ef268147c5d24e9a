"""Rows that wait in the state of their key until rows of another side have come, or can't come any more."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.aggregates.base import flatten, segment_lists
from springtide.state.keys import Indices
from springtide.state.layout import one_array
from springtide.state.matching import Stamped
from springtide.state.sides import ROW
from springtide.state.wide import wide_schema, wide_type
from springtide.state.window import event_times

Mask = npt.NDArray[np.bool_]
MATCHED = "$matched"


@dataclass(frozen=True)
class Side:
    """One side of a step: its columns, where its rows' time is, and whether rows without a match are of use."""

    number: int
    columns: pa.Schema
    time: str | None = None
    preserved: bool = False
    """Rows that find no match go on, with nulls for the other side; so the state tells who has found one."""

    @property
    def state(self) -> list[pa.Field]:
        """The columns that its rows take in the state: a list a key, as long as the key has rows that wait."""
        lists = [pa.field(self._named(f.name), pa.list_(f.type)) for f in self.columns]
        return [*lists, pa.field(self._named(MATCHED), pa.list_(pa.bool_()))] if self.preserved else lists

    def _named(self, column: str) -> str:
        return f"{self.number}.{column}"

    def arrived(self, rows: pa.Table, group: Indices) -> "Buffer":
        """Rows that have just come, each with the number of its key."""
        rows = rows.cast(wide_schema(self.columns))
        return Buffer(self, rows, group, np.zeros(len(group), np.bool_), np.ones(len(group), np.bool_))

    def waiting(self, state: Mapping[str, pa.Array], groups: Indices) -> "Buffer":
        """Rows of the state; its row number i is that of key `groups[i]`."""
        starts = np.arange(len(groups))
        columns, index = {}, np.empty(0, np.int64)
        for field in self.columns:
            columns[field.name], index = flatten(state[self._named(field.name)], starts)
        matched = np.zeros(len(index), np.bool_)
        if self.preserved:
            matched = flatten(state[self._named(MATCHED)], starts)[0].to_numpy(zero_copy_only=False)
        rows = pa.table(columns, schema=wide_schema(self.columns))
        return Buffer(self, rows, groups[index], matched, np.zeros(len(index), np.bool_))

    def lists(self, buffer: "Buffer", kept: Mask, groups: int) -> dict[str, pa.Array]:
        """The state of as many keys: the rows that are kept, in the order in which they came."""
        order = np.argsort(buffer.group, kind="stable")
        order = order[kept[order]]
        group = buffer.group[order]
        values = {field.name: one_array(buffer.rows.column(field.name)) for field in self.columns}
        if self.preserved:
            values[MATCHED] = pa.array(buffer.matched)
        return {self._named(name): segment_lists(column, order, group, groups) for name, column in values.items()}


@dataclass(frozen=True)
class Buffer:
    """Rows of one side, those that waited before those that have just come."""

    side: Side
    rows: pa.Table
    group: Indices
    """For each row, the number of its key."""
    matched: Mask
    fresh: Mask
    """The rows that have just come."""

    def __len__(self) -> int:
        return len(self.group)

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """Microseconds since the Unix epoch; nothing but zeros if the side has no time."""
        if self.side.time is None:
            return np.zeros(len(self), np.int64)
        return event_times(self.rows.column(self.side.time))[0]

    @property
    def stamped(self) -> Stamped:
        return Stamped(self.group, self.times)

    def and_then(self, others: "Buffer") -> "Buffer":
        """These rows and then others of the same side."""
        return Buffer(
            self.side,
            pa.concat_tables([self.rows, others.rows]).combine_chunks(),
            np.append(self.group, others.group),
            np.append(self.matched, others.matched),
            np.append(self.fresh, others.fresh),
        )

    def columns(self, rows: Indices | pa.Array) -> list[pa.Array]:
        """The columns of some rows, null where a row's number is."""
        picks = rows if isinstance(rows, pa.Array) else pa.array(rows)
        return [one_array(column).take(picks) for column in self.rows.columns]


def shown(side: Side, columns: list[pa.Array]) -> list[pa.Array]:
    """The columns that people see: a side without any has one that only counts its rows."""
    return [] if side.columns.names == [ROW] else columns


def nothing_of(side: Side, rows: int) -> list[pa.Array]:
    """The columns of rows that have no match on this side."""
    return [pa.nulls(rows, wide_type(field.type)) for field in side.columns]
