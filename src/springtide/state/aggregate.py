"""Keyed aggregation, over all time or over event-time windows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.adding import Overflowed
from springtide.state.aggregates.estimate import result_fields, results, summarise
from springtide.state.ahead import believed, newest
from springtide.state.errors import IntegerOverflow
from springtide.state.group import key_text
from springtide.state.keys import Indices
from springtide.state.layout import KEY, POSITION, STATE, Layout, one_array
from springtide.state.logic import BEGINNING_US, VALUE, Arrival, Changes, Closed, Groups, Moment, Segment
from springtide.state.position import Positions
from springtide.state.wide import narrowed, wide_schema, widened
from springtide.state.window import FINAL, WINDOW_END, WINDOW_START, Window, event_times, spread


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
        state = [
            pa.field(f"{name}.{i}", kind)
            for name, aggregate in self.aggregates.items()
            for i, kind in enumerate(aggregate.accumulator(self._kind(aggregate)))
        ]
        object.__setattr__(self, "layout", Layout(key, pa.schema(state), expires=self.window is not None))

    def _kind(self, aggregate: Aggregate) -> pa.DataType | None:
        return None if aggregate.column is None else self.rows.field(aggregate.column).type

    @property
    def columns(self) -> tuple[str, ...]:
        wanted = [a.column for a in self.aggregates.values() if a.column is not None]
        if self.window is not None:
            wanted.append(self.window.column)
        return tuple(dict.fromkeys(wanted))

    @property
    def late_us(self) -> int | None:
        return None if self.window is None else self.window.late_us

    @property
    def output(self) -> pa.Schema:
        fields = list(self.layout.key)
        if self.window is not None:
            fields.append(pa.field(WINDOW_END, self.window.kind(self.rows)))
        fields += [f for n, a in self.aggregates.items() for f in result_fields(n, a, self._kind(a))]
        if self.window is not None:
            fields.append(pa.field(FINAL, pa.bool_()))
        return pa.schema(fields)

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        rows_in, late, malformed, ahead, newest_us = rows.num_rows, 0, 0, 0, BEGINNING_US
        rows = widened(rows)
        if self.window is not None:
            times, valid = event_times(rows.column(self.window.column))
            timely = believed(times, valid, self.window.ahead_us, moment)
            malformed, ahead = int((~valid).sum()), int((valid & ~timely).sum())
            newest_us = newest(times, timely)
            pairs, starts = self.window.assign(times)
            open_ = timely[pairs] & (starts + self.window.size_us > moment.watermark_us)
            late = int(timely.sum()) - len(np.unique(pairs[open_]))
            pairs, starts = pairs[open_], starts[open_]
            picked = pa.array(pairs)
            positions = spread(positions[pairs], starts, self.slices)
            begins = pa.array(starts, pa.int64()).view(self.window.kind(self.rows))
            keys = [*(k.take(picked) for k in keys), begins]
            rows = rows.take(picked)
        segment = Segment.of(positions, keys)
        columns = {POSITION: pa.array(segment.positions)}
        columns |= {KEY + n: k for n, k in zip(self.layout.key.names, segment.keys, strict=True)}
        for name, aggregate in self.aggregates.items():
            values = None
            if aggregate.column is not None:
                values = one_array(rows.column(aggregate.column)).take(segment.order)
            with _telling(name, aggregate, self.layout.key.names, segment.keys):
                parts = summarise(aggregate, values, rows.num_rows, segment.starts, moment.kept)
            columns |= {f"{VALUE}{name}.{i}": part for i, part in enumerate(parts)}
        return Arrival(pa.table(columns), rows_in, late, malformed, (newest_us,), ahead)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        state: dict[str, pa.Array] = {}
        known = np.flatnonzero(groups.known)
        order, starts = _interleave(groups.known)
        for name, aggregate in self.aggregates.items():
            names = self._parts(name)
            with _telling(name, aggregate, groups.keys.column_names, groups.keys.columns):
                fresh = aggregate.combine([one_array(groups.rows.column(n)) for n in names], groups.starts)
                if len(known):
                    fresh = aggregate.combine(_beside(groups.state, names, fresh, known, order), starts)
            state |= dict(zip(names, fresh, strict=True))
        output = self._output(groups.keys, state, final=False)
        expires = None
        if self.window is not None:
            expires = _microseconds(groups.keys.column(WINDOW_START)) + self.window.size_us
        return Changes(pa.table(state, schema=wide_schema(self.layout.state)), output, expires_us=expires)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        keys = pa.table({n: state.column(KEY + n) for n in self.layout.key.names})
        parts = {n: one_array(state.column(STATE + n)) for n in self.layout.state.names}
        return Closed(self._output(keys, parts, final=True))

    def _parts(self, name: str) -> list[str]:
        return [n for n in self.layout.state.names if n.rpartition(".")[0] == name]

    def _output(self, keys: pa.Table, state: Mapping[str, pa.Array], *, final: bool) -> pa.Table:
        columns = {n: keys.column(n) for n in keys.column_names}
        if self.window is not None:
            ends = _microseconds(keys.column(WINDOW_START)) + self.window.size_us
            columns[WINDOW_END] = pa.array(ends, pa.int64()).view(self.window.kind(self.rows))
            columns[FINAL] = pa.array(np.full(keys.num_rows, final))
        for name, aggregate in self.aggregates.items():
            with _telling(name, aggregate, keys.column_names, keys.columns):
                columns |= results(name, aggregate, [state[n] for n in self._parts(name)])
        names = self.output.names
        return narrowed(pa.table([columns[n] for n in names], names), self.output)


@contextmanager
def _telling(name: str, aggregate: Aggregate, names: Sequence[str], keys: Sequence[pa.Array]) -> Iterator[None]:
    """An overflow names the key it is of."""
    try:
        yield
    except Overflowed as error:
        what = "rows" if aggregate.column is None else f"column {aggregate.column!r}"
        raise IntegerOverflow(name, what, key_text(names, keys, error.group)) from None


def _interleave(known: npt.NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """The order that puts each known key's old value before its new one, and where each key starts."""
    sizes = known.astype(np.int64) + 1
    starts = np.cumsum(sizes) - sizes
    old, new = int(known.sum()), len(known)
    order = np.empty(old + new, np.int64)
    order[starts[known]] = np.arange(old)
    order[starts + known] = np.arange(old, old + new)
    return order, starts


def _beside(old: pa.Table, names: list[str], fresh: list[pa.Array], known: Indices, order: Indices) -> list[pa.Array]:
    """Each key's old accumulator, where there is one, followed by its new one."""
    picked, order = pa.array(known), pa.array(order)
    return [
        pa.concat_arrays([one_array(old.column(name)).take(picked), new]).take(order)
        for name, new in zip(names, fresh, strict=True)
    ]


def _microseconds(column: pa.ChunkedArray) -> np.ndarray:
    return one_array(column).view(pa.int64()).to_numpy()  # type: ignore[no-any-return]
