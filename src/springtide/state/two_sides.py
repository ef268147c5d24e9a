"""Steps in which rows of two streams meet: they wait in the state of their key until nothing can come of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.buffer import Buffer, Mask, Side, nothing_of, shown
from springtide.state.chain import FOREVER_US
from springtide.state.clock import Clock, EventTime
from springtide.state.keys import Indices
from springtide.state.layout import EXPIRES, KEY, STATE, Layout, one_array
from springtide.state.logic import Arrival, Changes, Closed, Groups, Moment
from springtide.state.position import Positions
from springtide.state.sides import SIDE, rows_of, side_column
from springtide.state.timed_sides import TimedSides
from springtide.state.wide import narrowed, wide_schema

Columns = list[pa.Array]


@dataclass(frozen=True)
class Settled:
    """What is given out when rows go, and which of those that waited still wait."""

    output: list[pa.Table]
    left: Mask
    right: Mask
    expires_us: npt.NDArray[np.int64]
    """By key: when the next of its rows goes."""


@dataclass(frozen=True)
class TwoSided(ABC):
    """A logic with a left and a right input. Null keys meet nothing."""

    key: pa.Schema
    left: Side
    right: Side
    output: pa.Schema
    timed: TimedSides
    columns: tuple[str, ...] = field(default=(SIDE, side_column(0), side_column(1)), init=False)

    @abstractmethod
    def meet(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask) -> pa.Table:
        """What is given out at once because of the rows that have just come; of keys in `nulls`, nothing."""

    @abstractmethod
    def settle(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask, moment: Moment) -> Settled:
        """Let rows go that are of no use any more, those of keys in `nulls` at once."""

    def goes_on(self, side: Side) -> bool:
        """Whether rows of a side go on if they find no match."""
        return side.preserved

    @property
    def layout(self) -> Layout:
        state = pa.schema([*self.left.state, *self.right.state])
        return Layout(self.key, state, expires=self.clock is not None, drops=True)

    @property
    def clock(self) -> Clock | None:
        return None if self.timed.late_us is None else EventTime(self.timed.late_us)

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        of_use = ~_nulls(keys)
        for side in (self.left, self.right):
            if self.goes_on(side):
                of_use |= one_array(rows.column(SIDE)).to_numpy() == side.number
        return self.timed.arrive(positions, keys, rows, moment, self.layout, of_use)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        known = np.flatnonzero(groups.known)
        state = _arrays(groups.state.take(pa.array(known)))
        left, right = (self._buffer(side, groups, state, known) for side in (self.left, self.right))
        nulls = _nulls([one_array(column) for column in groups.keys.columns])
        met = self.meet(groups.keys, left, right, nulls)
        settled = self.settle(groups.keys, left, right, nulls, moment)
        after, keep = self._state(left, right, settled, len(groups))
        output = pa.concat_tables([met, *settled.output])
        return Changes(after, output, keep, expires_us=settled.expires_us if self.layout.expires else None)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        keys = state.select([KEY + name for name in self.key.names]).rename_columns(self.key.names)
        arrays = {name: one_array(state.column(STATE + name)) for name in self.layout.state.names}
        left, right = (side.waiting(arrays, np.arange(state.num_rows)) for side in (self.left, self.right))
        settled = self.settle(keys, left, right, np.zeros(state.num_rows, np.bool_), moment)
        after, keep = self._state(left, right, settled, state.num_rows)
        columns = {STATE + name: after.column(name) for name in after.column_names}
        columns[EXPIRES] = pa.array(settled.expires_us, pa.int64())
        rows = pa.table({name: columns.get(name, state.column(name)) for name in state.column_names}, state.schema)
        output = pa.concat_tables([self.output.empty_table(), *settled.output])
        return Closed(output, rows.filter(pa.array(keep)))

    def rows(
        self,
        keys: pa.Table,
        group: Indices,
        left: Columns | None,
        right: Columns | None,
        added: Sequence[pa.Array] = (),
    ) -> pa.Table:
        """Output rows of some keys, with columns that are added after the key; a side that is None has no match."""
        picks, count = pa.array(group), len(group)
        own = [one_array(column).take(picks) for column in keys.columns]
        mine = shown(self.left, nothing_of(self.left, count) if left is None else left)
        theirs = shown(self.right, nothing_of(self.right, count) if right is None else right)
        return narrowed(pa.table([*own, *added, *mine, *theirs], names=self.output.names), self.output)

    def _buffer(self, side: Side, groups: Groups, state: Mapping[str, pa.Array], known: Indices) -> Buffer:
        """A side's rows: those that waited, and those that have come."""
        which, rows = rows_of(groups.rows, side.number)
        return side.waiting(state, known).and_then(side.arrived(rows, groups.group_of_row[which]))

    def _state(self, left: Buffer, right: Buffer, settled: Settled, keys: int) -> tuple[pa.Table, Mask]:
        """The state of each key, and which keys have any."""
        lists = left.side.lists(left, settled.left, keys) | right.side.lists(right, settled.right, keys)
        keep = np.zeros(keys, np.bool_)
        keep[left.group[settled.left]] = keep[right.group[settled.right]] = True
        return pa.table(lists, schema=wide_schema(self.layout.state)), keep


def next_expiry(keys: int, *waiting: tuple[Indices, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """By key: when the first of its rows goes, given the keys of rows and when each of them goes."""
    found = np.full(keys, FOREVER_US)
    for group, ends_us in waiting:
        np.minimum.at(found, group, ends_us)
    return found


def _nulls(keys: list[pa.Array]) -> Mask:
    """Which have a null in any column of their key."""
    found = np.zeros(len(keys[0]), np.bool_)
    for column in keys:
        if column.null_count:
            found |= pc.is_null(column).to_numpy(zero_copy_only=False)
    return found


def _arrays(table: pa.Table) -> dict[str, pa.Array]:
    return {name: one_array(table.column(name)) for name in table.column_names}
