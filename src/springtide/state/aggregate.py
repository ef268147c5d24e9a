"""Keyed aggregation, over all time or over event-time windows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from springtide.state.accumulators import Accumulators, KeyedBy, Mask, Parts
from springtide.state.aggregates import Aggregate
from springtide.state.ahead import believed, newest
from springtide.state.clock import Clock
from springtide.state.lateness import of_window
from springtide.state.layout import EXPIRES, KEY, POSITION, STATE, Layout, one_array
from springtide.state.logic import BEGINNING_US, VALUE, Arrival, Changes, Closed, Groups, Moment, Segment
from springtide.state.position import Positions
from springtide.state.wide import narrowed, wide_schema, widened
from springtide.state.window import FINAL, WINDOW_END, WINDOW_START, Window, spread


@dataclass(frozen=True)
class AggregateLogic:
    """Accumulators by key; rows of equal key are combined before they are shuffled."""

    key: pa.Schema
    rows: pa.Schema
    aggregates: Mapping[str, Aggregate]
    slices: int
    window: Window | None = None
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        key = self.key
        if self.window is not None:
            key = key.append(pa.field(WINDOW_START, self.window.kind(self.rows)))
        state = pa.schema(self._accumulators.fields)
        object.__setattr__(self, "layout", Layout(key, state, expires=self.window is not None))

    @cached_property
    def _accumulators(self) -> Accumulators:
        return Accumulators(self.rows, self.aggregates)

    @property
    def columns(self) -> tuple[str, ...]:
        time = [] if self.window is None or self.window.column is None else [self.window.column]
        return tuple(dict.fromkeys([*self._accumulators.columns, *time]))

    @property
    def clock(self) -> Clock | None:
        return None if self.window is None else self.window.clock

    @property
    def output(self) -> pa.Schema:
        fields = list(self.layout.key)
        if self.window is not None:
            fields.append(pa.field(WINDOW_END, self.window.kind(self.rows)))
        fields += self._accumulators.results
        if self.window is not None:
            fields.append(pa.field(FINAL, pa.bool_()))
        return pa.schema(fields)

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        rows_in, late, malformed, ahead, newest_us = rows.num_rows, 0, 0, 0, BEGINNING_US
        rows = widened(rows)
        if self.window is not None:
            times, valid = self.window.times(rows, moment.watermark_us)
            timely = believed(times, valid, self.window.ahead_us, moment)
            malformed, ahead = int((~valid).sum()), int((valid & ~timely).sum())
            newest_us = newest(times, timely)
            pairs, starts = self.window.assign(times)
            open_ = timely[pairs] & (starts + self.window.size_us > moment.watermark_us)
            lateness = of_window(self.window)
            late = 0 if lateness is None else int((timely & lateness.of(times, moment)).sum())
            pairs, starts = pairs[open_], starts[open_]
            picked = pa.array(pairs)
            positions = spread(positions[pairs], starts, self.slices)
            begins = pa.array(starts, pa.int64()).view(self.window.kind(self.rows))
            keys = [*(k.take(picked) for k in keys), begins]
            rows = rows.take(picked)
        segment = Segment.of(positions, keys)
        columns = {POSITION: pa.array(segment.positions)}
        columns |= {KEY + n: k for n, k in zip(self.layout.key.names, segment.keys, strict=True)}
        named = KeyedBy(self.layout.key.names, segment.keys)
        parts = self._accumulators.summarise(rows, segment.order, segment.starts, moment.kept, named)
        columns |= {VALUE + name: part for name, part in parts.items()}
        return Arrival(pa.table(columns), rows_in, late, malformed, (newest_us,), ahead)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        known, named = np.flatnonzero(groups.known), KeyedBy(groups.keys.column_names, groups.keys.columns)
        names = self.layout.state.names
        state: Parts = self._accumulators.combine(_arrays(groups.rows, names), groups.starts, named)
        if len(known):
            picks = pa.array(known)
            before = {name: array.take(picks) for name, array in _arrays(groups.state, state).items()}
            state = self._accumulators.continued(before, state, groups.known, named)
        output = self._output(groups.keys, state, final=False)
        expires = None
        if self.window is not None:
            ends = _microseconds(groups.keys.column(WINDOW_START)) + self.window.size_us
            expires = self.window.next_result(ends, moment.watermark_us)
            if self.window.early_us is not None:
                output = output.slice(0, 0)
        return Changes(pa.table(state, schema=wide_schema(self.layout.state)), output, expires_us=expires)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        keys = pa.table({n: state.column(KEY + n) for n in self.layout.key.names})
        parts = {n: one_array(state.column(STATE + n)) for n in self.layout.state.names}
        assert self.window is not None
        ends = _microseconds(keys.column(WINDOW_START)) + self.window.size_us
        over = ends <= moment.watermark_us
        output = self._output(keys, parts, final=over)
        if over.all():
            return Closed(output)
        open_ = pa.array(np.flatnonzero(~over))
        place = state.schema.get_field_index(EXPIRES)
        return Closed(output, state.set_column(place, state.schema.field(place), pa.array(ends)).take(open_))

    def _output(self, keys: pa.Table, state: Mapping[str, pa.Array], *, final: bool | Mask) -> pa.Table:
        columns = {n: keys.column(n) for n in keys.column_names}
        if self.window is not None:
            ends = _microseconds(keys.column(WINDOW_START)) + self.window.size_us
            columns[WINDOW_END] = pa.array(ends, pa.int64()).view(self.window.kind(self.rows))
            columns[FINAL] = pa.array(np.broadcast_to(final, keys.num_rows))
        columns |= self._accumulators.finish(state, KeyedBy(keys.column_names, keys.columns))
        names = self.output.names
        return narrowed(pa.table([columns[n] for n in names], names), self.output)


def _arrays(table: pa.Table, names: Iterable[str]) -> dict[str, pa.Array]:
    return {name: one_array(table.column(name)) for name in names}


def _microseconds(column: pa.ChunkedArray) -> np.ndarray:
    return one_array(column).view(pa.int64()).to_numpy()  # type: ignore[no-any-return]
