"""Keys that are forgotten a while after their last row: what any logic without an end of its own may be wrapped in."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.ahead import Times
from springtide.state.chain import Chain
from springtide.state.clock import Clock, EventTime, WallTime
from springtide.state.layout import EXPIRES, POSITION, STATE, Layout, one_array
from springtide.state.logic import BEGINNING_US, VALUE, Arrival, Changes, Closed, Groups, Logic, Moment
from springtide.state.position import Positions
from springtide.state.row_times import RowTimes
from springtide.state.run import Run

UNTIL = "$until_us"
"""The column of the state with the time until which a key is remembered, in microseconds."""
NEWEST = "$newest_us"
"""The column of rows on their way with the newest event time of their key."""


@dataclass(frozen=True)
class Memory:
    """How long a key is remembered: by the newest event time of its rows, or by the wall clock."""

    span_us: int
    times: RowTimes | None = None
    """None for the wall clock."""
    late_us: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Those with its times; not those of several inputs, as the columns of their sides travel whole."""
        return self.times.columns if self.times is not None and len(self.times.columns) == 1 else ()

    @property
    def clock(self) -> Clock:
        return WallTime() if self.times is None else EventTime(self.late_us)


@dataclass(frozen=True)
class Forgetting:
    """A logic whose keys are forgotten, without a word, once the clock is a span past their last row.

    If the logic has a clock of its own, as a reducer with timers has, it is the same one.
    """

    logic: Logic
    memory: Memory

    @property
    def layout(self) -> Layout:
        inner = self.logic.layout
        return replace(inner, state=inner.state.append(pa.field(UNTIL, pa.int64())), expires=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.logic.columns, *self.memory.columns]))

    @property
    def clock(self) -> Clock | None:
        return self.memory.clock

    @property
    def output(self) -> pa.Schema:
        return self.logic.output

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        wanted = rows.select(self.logic.columns)
        if self.memory.times is None:
            return self.logic.arrive(positions, keys, wanted, moment)
        stamps = self.memory.times.read(rows, moment)
        kept = pa.array(np.flatnonzero(stamps.timely))
        positions, times = positions[stamps.timely], stamps.times_us[stamps.timely]
        arrival = self.logic.arrive(positions, [key.take(kept) for key in keys], wanted.take(kept), moment)
        newest = _newest(positions, times, one_array(arrival.rows.column(POSITION)).to_numpy())
        return replace(
            arrival,
            rows=arrival.rows.append_column(VALUE + NEWEST, pa.array(newest)),
            rows_in=rows.num_rows,
            malformed_rows=stamps.malformed,
            ahead_rows=stamps.ahead,
            newest_us=stamps.newest_us,
        )

    def update(self, groups: Groups, moment: Moment) -> Changes:
        changes = self.logic.update(self._inner(groups), moment)
        until = self._until(groups, moment)
        expires = until if changes.expires_us is None else np.minimum(until, changes.expires_us)
        # A key that has had a row is remembered longer, even if nothing else of it has changed.
        state = changes.state.append_column(UNTIL, pa.array(until))
        return replace(changes, state=state, write=None, expires_us=expires)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        """Keys go; but what the logic itself has to close before that, it closes."""
        until = one_array(state.column(STATE + UNTIL)).to_numpy()
        if not self.logic.layout.expires:
            return Closed(self.output.empty_table())
        rings = np.flatnonzero(one_array(state.column(EXPIRES)).to_numpy() < until)
        due, until = state.take(pa.array(rings)), until[rings]
        closed = self.logic.close(due.select(self.logic.layout.schema.names), moment)
        if closed.left is None or not closed.left.num_rows:
            return Closed(closed.output)
        stay = Run(closed.left, self.logic.layout, 1)
        was = Chain([Run(due, self.layout, 1)], self.layout).find(stay.positions, stay.keys).row
        expires = np.minimum(stay.expires, until[was])
        columns = {EXPIRES: pa.array(expires), STATE + UNTIL: pa.array(until[was])}
        names = self.layout.schema.names
        rows = pa.table([columns[n] if n in columns else stay.rows.column(n) for n in names], self.layout.schema)
        return Closed(closed.output, rows.filter(pa.array(until[was] > moment.watermark_us)))

    def _inner(self, groups: Groups) -> Groups:
        """What the logic itself knows of groups."""
        rows = groups.rows if self.memory.times is None else groups.rows.drop_columns([NEWEST])
        return replace(groups, rows=rows, state=groups.state.drop_columns([UNTIL]))

    def _until(self, groups: Groups, moment: Moment) -> Times:
        """By key: when it is forgotten, if no other row of it comes."""
        until: Times = np.full(len(groups), moment.watermark_us + self.memory.span_us)
        if self.memory.times is not None:
            newest = one_array(groups.rows.column(NEWEST)).to_numpy()
            before = pc.fill_null(one_array(groups.state.column(UNTIL)), BEGINNING_US).to_numpy(zero_copy_only=False)
            until = np.maximum(np.maximum.reduceat(newest, groups.starts) + self.memory.span_us, before)
        return np.maximum(until, moment.watermark_us + 1)


def _newest(positions: Positions, times: Times, wanted: Positions) -> Times:
    """The newest of some times at each of the positions that are wanted.

    Keys that share a position, as a hash may give two of them, are remembered as long as the longer one.
    """
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else order
    most: Times = np.maximum.reduceat(times[order], starts) if len(starts) else times
    found: Times = most[np.searchsorted(ordered[starts], wanted)]
    return found
