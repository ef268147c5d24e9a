"""The first row of every key, for ever or within a span of event time."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.ahead import believed, newest
from springtide.state.clock import Clock, EventTime
from springtide.state.lateness import Lateness
from springtide.state.layout import Layout
from springtide.state.logic import BEGINNING_US, Arrival, Changes, Closed, Groups, Moment, sorted_rows
from springtide.state.position import Positions
from springtide.state.wide import narrowed
from springtide.state.window import event_times


@dataclass(frozen=True)
class Within:
    """Remember a key until the newest event time is `span_us` past the row that was let through."""

    column: str
    span_us: int
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count; None if all do."""

    @property
    def lateness(self) -> Lateness:
        """Which rows come too late: those whose key, had it come in time, would be forgotten by now."""
        return Lateness(self.column, self.ahead_us, size_us=0)


@dataclass(frozen=True)
class DedupeLogic:
    key: pa.Schema
    rows: pa.Schema
    within: Within | None = None

    @property
    def layout(self) -> Layout:
        return Layout(self.key, pa.schema([]), expires=self.within is not None)

    @property
    def output(self) -> pa.Schema:
        return self.rows

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(n for n in self.rows.names if n not in self.key.names)

    @property
    def clock(self) -> Clock | None:
        return None if self.within is None else EventTime(self.within.span_us)

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        rows_in, late, malformed, ahead, newest_us = rows.num_rows, 0, 0, 0, BEGINNING_US
        if self.within is not None:
            times, valid = event_times(self._times(keys, rows))
            timely = believed(times, valid, self.within.ahead_us, moment)
            newest_us, ahead = newest(times, timely), int((valid & ~timely).sum())
            fresh = ~self.within.lateness.of(times, moment)
            late, malformed = int((timely & ~fresh).sum()), int((~valid).sum())
            kept = np.flatnonzero(timely & fresh)
            positions, rows = positions[kept], rows.take(pa.array(kept))
            keys = [k.take(pa.array(kept)) for k in keys]
        return Arrival(sorted_rows(positions, keys, rows, self.layout), rows_in, late, malformed, (newest_us,), ahead)

    def _times(self, keys: list[pa.Array], rows: pa.Table) -> pa.ChunkedArray:
        assert self.within is not None
        if self.within.column in self.key.names:
            return pa.chunked_array([keys[self.key.names.index(self.within.column)]])
        return rows.column(self.within.column)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        new = np.flatnonzero(~groups.known)
        output = groups.rows.take(pa.array(groups.starts[new])).select(self.rows.names)
        expires = None
        if self.within is not None:
            firsts = groups.rows.take(pa.array(groups.starts))
            expires, _ = event_times(firsts.column(self.within.column))
        return Changes(groups.state, narrowed(output, self.rows), write=~groups.known, expires_us=expires)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        return Closed(self.rows.empty_table())
