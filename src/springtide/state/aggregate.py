"""Keyed aggregation, over all time or over event-time windows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.accumulators import Accumulators, KeyedBy, Mask, Parts
from springtide.state.aggregates import Aggregate
from springtide.state.ahead import believed, newest
from springtide.state.clock import Clock
from springtide.state.keys import Indices
from springtide.state.lateness import of_window
from springtide.state.layout import EXPIRES, KEY, POSITION, STATE, Layout, one_array
from springtide.state.logic import VALUE, Arrival, Changes, Closed, Groups, Moment, Segment
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
        rows_in, rows = rows.num_rows, widened(rows)
        if self.window is None:
            return Arrival(self._summarised(positions, keys, rows, moment), rows_in)
        times, valid = self.window.times(rows, moment.watermark_us)
        timely = believed(times, valid, self.window.ahead_us, moment)
        malformed, ahead = int((~valid).sum()), int((valid & ~timely).sum())
        lateness = of_window(self.window)
        late = 0 if lateness is None else int((timely & lateness.of(times, moment)).sum())
        kept = np.flatnonzero(timely)
        if self.window.panes > 1:
            ready = self._by_panes(positions, keys, rows, times, kept, moment)
        else:
            pairs, starts = self.window.assign(times[kept])
            ready = self._by_windows(positions, keys, rows, kept[pairs], starts, moment)
        return Arrival(ready, rows_in, late, malformed, (newest(times, timely),), ahead)

    def _summarised(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> pa.Table:
        """What is known of each key by these rows, in the order of positions."""
        segment = Segment.of(positions, keys)
        named = KeyedBy(self.layout.key.names, segment.keys)
        return self._table(
            segment, self._accumulators.summarise(rows, segment.order, segment.starts, moment.kept, named)
        )

    def _by_windows(
        self,
        positions: Positions,
        keys: list[pa.Array],
        rows: pa.Table,
        pairs: Indices,
        starts: npt.NDArray[np.int64],
        moment: Moment,
    ) -> pa.Table:
        """The same by window: row `pairs[i]` is in the one that starts at `starts[i]`, if that is still open."""
        assert self.window is not None
        open_ = starts + self.window.size_us > moment.watermark_us
        pairs, starts = pairs[open_], starts[open_]
        picked = pa.array(pairs)
        keyed = [*(key.take(picked) for key in keys), self._begins(starts)]
        return self._summarised(spread(positions[pairs], starts, self.slices), keyed, rows.take(picked), moment)

    def _by_panes(
        self,
        positions: Positions,
        keys: list[pa.Array],
        rows: pa.Table,
        times: npt.NDArray[np.int64],
        kept: Indices,
        moment: Moment,
    ) -> pa.Table:
        """The same for windows that overlap: rows are summarised once by pane, and each window combines its panes."""
        assert self.window is not None
        panes = times[kept] - times[kept] % self.window.slide_us
        open_ = panes + self.window.size_us > moment.watermark_us
        kept, panes = kept[open_], panes[open_]
        picked = pa.array(kept)
        by_pane = Segment.of(
            spread(positions[kept], panes, self.slices), [*(key.take(picked) for key in keys), self._begins(panes)]
        )
        named = KeyedBy(self.layout.key.names, by_pane.keys)
        of_pane = self._accumulators.summarise(rows.take(picked), by_pane.order, by_pane.starts, moment.kept, named)
        firsts = by_pane.order.to_numpy()[by_pane.starts]
        pairs, starts = self.window.assign(panes[firsts])
        open_ = starts + self.window.size_us > moment.watermark_us
        pairs, starts = pairs[open_], starts[open_]
        picked = pa.array(pairs)
        segment = Segment.of(
            spread(positions[kept[firsts[pairs]]], starts, self.slices),
            [*(key.take(picked) for key in by_pane.keys[:-1]), self._begins(starts)],
        )
        parts = {name: part.take(picked).take(segment.order) for name, part in of_pane.items()}
        named = KeyedBy(self.layout.key.names, segment.keys)
        return self._table(segment, self._accumulators.combine(parts, segment.starts, named))

    def _begins(self, starts: npt.NDArray[np.int64]) -> pa.Array:
        assert self.window is not None
        return pa.array(starts, pa.int64()).view(self.window.kind(self.rows))

    def _table(self, segment: Segment, parts: Parts) -> pa.Table:
        columns = {POSITION: pa.array(segment.positions)}
        columns |= {KEY + n: k for n, k in zip(self.layout.key.names, segment.keys, strict=True)}
        return pa.table(columns | {VALUE + name: part for name, part in parts.items()})

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
