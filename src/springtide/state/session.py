"""Sessions: rows of a key that follow each other with less than a gap between them, aggregated."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.errors import BadValue
from springtide.state.accumulators import Accumulators, KeyedBy
from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.base import flatten, segment_lists
from springtide.state.ahead import believed, newest
from springtide.state.clock import Clock, EventTime
from springtide.state.group import group
from springtide.state.keys import Indices
from springtide.state.lateness import Lateness
from springtide.state.layout import EXPIRES, KEY, POSITION, STATE, Layout, one_array
from springtide.state.logic import VALUE, Arrival, Changes, Closed, Groups, Moment
from springtide.state.order import order_within
from springtide.state.position import Positions
from springtide.state.wide import narrowed, wide_schema, widened
from springtide.state.window import FINAL, event_times

START, END = "session_start", "session_end"
FIRST, LAST = "$first", "$last"
"""The columns with the times of a session's first and last row, in microseconds."""


@dataclass(frozen=True)
class Gap:
    """How long a key must be silent for its session to be over, and how late rows may be."""

    column: str
    gap_us: int
    late_us: int
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count; None if all do."""

    def __post_init__(self) -> None:
        if self.gap_us <= 0 or self.late_us < 0:
            raise BadValue(
                f"session over {self.column!r}: gap must be positive and late not negative, "
                f"got gap={self.gap_us} µs, late={self.late_us} µs"
            )

    @property
    def lateness(self) -> Lateness:
        """Which rows come too late: those before the watermark, so that no session that is over is ever changed."""
        return Lateness(self.column, self.ahead_us)


@dataclass(frozen=True)
class SessionLogic:
    """The open sessions of a key are one row of its state, a list a column.

    A row before the watermark is late. So a row that counts cannot belong to a session that is over, and sessions are
    the same however the rows come.
    """

    key: pa.Schema
    rows: pa.Schema
    aggregates: Mapping[str, Aggregate]
    gap: Gap

    @cached_property
    def _accumulators(self) -> Accumulators:
        return Accumulators(self.rows, self.aggregates)

    @cached_property
    def _pieces(self) -> pa.Schema:
        """The columns of a session, or of a part of one."""
        return pa.schema([pa.field(FIRST, pa.int64()), pa.field(LAST, pa.int64()), *self._accumulators.fields])

    @property
    def layout(self) -> Layout:
        state = pa.schema([pa.field(f.name, pa.list_(f.type)) for f in self._pieces])
        return Layout(self.key, state, expires=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._accumulators.columns, self.gap.column]))

    @property
    def clock(self) -> Clock | None:
        return EventTime(self.gap.late_us)

    @property
    def output(self) -> pa.Schema:
        kind = pa.timestamp("us", self.rows.field(self.gap.column).type.tz)
        times = [pa.field(START, kind), pa.field(END, kind)]
        return pa.schema([*self.key, *times, *self._accumulators.results, pa.field(FINAL, pa.bool_())])

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        rows_in, rows = rows.num_rows, widened(rows)
        times, valid = event_times(rows.column(self.gap.column))
        timely = believed(times, valid, self.gap.ahead_us, moment)
        fresh = timely & ~self.gap.lateness.of(times, moment)
        late, malformed, ahead = int((timely & ~fresh).sum()), int((~valid).sum()), int((valid & ~timely).sum())
        kept = np.flatnonzero(fresh)
        picks = pa.array(kept)
        positions, rows, keys = positions[kept], rows.take(picks), [key.take(picks) for key in keys]
        pieces = self._cut(positions, keys, rows, times[kept], moment)
        return Arrival(pieces, rows_in, late, malformed, (newest(times, timely),), ahead)

    def _cut(
        self, positions: Positions, keys: list[pa.Array], rows: pa.Table, times: npt.NDArray[np.int64], moment: Moment
    ) -> pa.Table:
        """Rows as parts of sessions, in the order of their positions."""
        grouping = group(positions, keys)
        order = grouping.order[order_within(grouping.group_of_row, times[grouping.order])]
        starts, lasts = _joined(grouping.group_of_row, times[order], times[order], self.gap.gap_us)
        firsts = order[starts]
        own = [key.take(pa.array(firsts)) for key in keys]
        named = KeyedBy(self.key.names, own)
        columns = {POSITION: pa.array(positions[firsts])}
        columns |= {KEY + name: key for name, key in zip(self.key.names, own, strict=True)}
        columns |= {VALUE + FIRST: pa.array(times[firsts]), VALUE + LAST: pa.array(lasts)}
        parts = self._accumulators.summarise(rows, pa.array(order), starts, moment.kept, named)
        return pa.table(columns | {VALUE + name: part for name, part in parts.items()})

    def update(self, groups: Groups, moment: Moment) -> Changes:
        known = np.flatnonzero(groups.known)
        before, group_before = _unfolded(groups.state.take(pa.array(known)), self._pieces)
        pieces = pa.concat_tables([before, groups.rows.select(self._pieces.names).cast(before.schema)]).combine_chunks()
        group_of = np.append(known[group_before], groups.group_of_row)
        fresh = np.append(np.zeros(len(group_before), np.bool_), np.ones(groups.rows.num_rows, np.bool_))
        firsts = one_array(pieces.column(FIRST)).to_numpy()
        order = order_within(group_of, firsts)
        ordered, taken = group_of[order], pa.array(order)
        lasts = one_array(pieces.column(LAST)).to_numpy()
        starts, ends = _joined(ordered, firsts[order], lasts[order], self.gap.gap_us)
        of_key = ordered[starts]
        named = KeyedBy(groups.keys.column_names, [one_array(c).take(pa.array(of_key)) for c in groups.keys.columns])
        parts = {f.name: one_array(pieces.column(f.name)).take(taken) for f in self._accumulators.fields}
        combined = self._accumulators.combine(parts, starts, named)
        sessions = pa.table({FIRST: firsts[order][starts], LAST: ends, **combined}, schema=before.schema)
        changed = np.logical_or.reduceat(fresh[order], starts) if len(starts) else fresh
        some = pa.array(np.flatnonzero(changed))
        output = self._output([key.take(some) for key in named.columns], sessions.take(some), final=False)
        expires_us = np.minimum.reduceat(ends, np.searchsorted(of_key, np.arange(len(groups)))) + self.gap.gap_us
        return Changes(_folded(sessions, of_key, len(groups)), output, expires_us=expires_us)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        lists = state.select([STATE + name for name in self._pieces.names]).rename_columns(self._pieces.names)
        sessions, of_key = _unfolded(lists, self._pieces)
        ends = one_array(sessions.column(LAST)).to_numpy() + self.gap.gap_us
        over = ends <= moment.watermark_us
        ended, open_ = pa.array(np.flatnonzero(over)), np.flatnonzero(~over)
        keys = [one_array(state.column(KEY + name)).take(pa.array(of_key[over])) for name in self.key.names]
        output = self._output(keys, sessions.take(ended), final=True)
        left, starts = np.unique(of_key[open_], return_index=True)
        rows = state.take(pa.array(left))
        after = _folded(sessions.take(pa.array(open_)), np.searchsorted(left, of_key[open_]), len(left))
        columns = {STATE + name: after.column(name) for name in after.column_names}
        columns[EXPIRES] = pa.array(np.minimum.reduceat(ends[open_], starts) if len(left) else ends[:0])
        return Closed(output, pa.table({n: columns.get(n, rows.column(n)) for n in rows.column_names}, rows.schema))

    def _output(self, keys: list[pa.Array], sessions: pa.Table, *, final: bool) -> pa.Table:
        kind = self.output.field(START).type
        firsts, lasts = (one_array(sessions.column(name)).to_numpy() for name in (FIRST, LAST))
        columns = dict(zip(self.key.names, keys, strict=True))
        columns |= {START: pa.array(firsts).view(kind), END: pa.array(lasts + self.gap.gap_us).view(kind)}
        parts = {f.name: one_array(sessions.column(f.name)) for f in self._accumulators.fields}
        columns |= self._accumulators.finish(parts, KeyedBy(self.key.names, keys))
        columns[FINAL] = pa.array(np.full(sessions.num_rows, final))
        return narrowed(pa.table([columns[name] for name in self.output.names], self.output.names), self.output)


def _joined(group_of: Indices, firsts: Indices, lasts: Indices, gap_us: int) -> tuple[Indices, npt.NDArray[np.int64]]:
    """Where sessions start among parts in the order of group and first time, and the last time of each session."""
    if not len(group_of):
        return group_of, lasts
    # The newest time so far, within each group: group and rank fit one number, whatever the times are.
    times, rank = np.unique(lasts, return_inverse=True)
    so_far = np.maximum.accumulate(group_of * len(times) + rank)
    newest_us = times[so_far - group_of * len(times)]
    begins = np.ones(len(group_of), np.bool_)
    begins[1:] = (group_of[1:] != group_of[:-1]) | (firsts[1:] - newest_us[:-1] >= gap_us)
    starts = np.flatnonzero(begins)
    return starts, newest_us[np.append(starts[1:], len(group_of)) - 1]


def _unfolded(lists: pa.Table, pieces: pa.Schema) -> tuple[pa.Table, Indices]:
    """The sessions of rows of state, and the row that each is of."""
    starts, of_row = np.arange(lists.num_rows), np.empty(0, np.int64)
    columns = {}
    for name in pieces.names:
        columns[name], of_row = flatten(one_array(lists.column(name)), starts)
    return pa.table(columns, schema=wide_schema(pieces)), of_row


def _folded(sessions: pa.Table, of_key: Indices, keys: int) -> pa.Table:
    """The state of as many keys; sessions come in the order of their keys."""
    rows = np.arange(sessions.num_rows)
    columns = {
        name: segment_lists(one_array(sessions.column(name)), rows, of_key, keys) for name in sessions.column_names
    }
    return pa.table(columns)
