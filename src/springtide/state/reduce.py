"""A user's reducer over keyed rows, with typed state."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.clock import Clock
from springtide.state.errors import BadUpdate
from springtide.state.layout import EXPIRES, KEY, STATE, Layout, one_array
from springtide.state.logic import Arrival, Changes, Closed, Groups, Moment, sorted_rows
from springtide.state.position import Positions
from springtide.state.timers import TIMER, Timing
from springtide.state.wide import narrowed, wide_schema


@dataclass(frozen=True)
class Reduced:
    """What a vectorised reducer returns: one state row a key, output rows, and whom to forget."""

    state: pa.Table
    output: pa.Table
    keep: npt.NDArray[np.bool_] | None = None
    timers: pa.Array | None = None
    """When to ring for each key, null for never; None leaves all timers as they are."""


BatchReducer = Callable[[Groups], Reduced]
"""All keys of an instance at once; rows, keys and state are Arrow tables."""


@dataclass(frozen=True)
class ReduceLogic:
    """Rows travel as they are; the user's function sees them beside the state of their key."""

    key: pa.Schema
    rows: pa.Schema
    reducer: BatchReducer
    state: pa.Schema
    output: pa.Schema
    timing: Timing | None = None

    @property
    def layout(self) -> Layout:
        timer = [] if self.timing is None else [pa.field(TIMER, self.timing.kind)]
        return Layout(self.key, pa.schema([*self.state, *timer]), expires=self.timing is not None, drops=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(n for n in self.rows.names if n not in self.key.names)

    @property
    def clock(self) -> Clock | None:
        return None if self.timing is None else self.timing.clock

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        if self.timing is None or self.timing.times is None:
            return Arrival(sorted_rows(positions, keys, rows, self.layout), rows.num_rows)
        stamps = self.timing.times.read(rows, moment)
        kept = pa.array(np.flatnonzero(stamps.timely))
        ready = sorted_rows(positions[stamps.timely], [key.take(kept) for key in keys], rows.take(kept), self.layout)
        return Arrival(
            ready,
            rows.num_rows,
            malformed_rows=stamps.malformed,
            newest_us=stamps.newest_us,
            ahead_rows=stamps.ahead,
        )

    def update(self, groups: Groups, moment: Moment) -> Changes:
        if not len(groups):
            return Changes(self.layout.state.empty_table(), self.output.empty_table())
        plain = self._plain(groups, moment)
        reduced = self._called(self.reducer, plain)
        if self.timing is None:
            return Changes(reduced.state, reduced.output, reduced.keep)
        timers = plain.timers if reduced.timers is None else self.timing.checked(reduced.timers, len(groups))
        state = reduced.state.append_column(TIMER, timers)
        return Changes(state, reduced.output, reduced.keep, expires_us=self.timing.expiries(timers, moment))

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        """Timers ring; whoever is kept stays, and rings again if the reducer says so."""
        if self.timing is None:
            return Closed(self.output.empty_table())
        timing, count = self.timing, state.num_rows
        rung = self._rung(state, timing, moment)
        reduced = self._called(timing.ring, rung)
        timers = rung.timers if reduced.timers is None else timing.checked(reduced.timers, count)
        columns = {STATE + n: reduced.state.column(n) for n in self.state.names}
        columns |= {STATE + TIMER: timers, EXPIRES: pa.array(timing.expiries(timers, moment))}
        left = pa.table([columns.get(n, state.column(n)) for n in state.column_names], schema=state.schema)
        return Closed(reduced.output, left if reduced.keep is None else left.filter(pa.array(reduced.keep)))

    def _rung(self, state: pa.Table, timing: Timing, moment: Moment) -> Groups:
        """Keys whose timers have come: without rows, and without timers."""
        keys = state.select([KEY + n for n in self.key.names]).rename_columns(self.key.names)
        before = state.select([STATE + n for n in self.state.names]).rename_columns(self.state.names)
        return Groups(
            narrowed(keys, self.key),
            pa.schema([self.rows.field(n) for n in self.columns]).empty_table(),
            np.zeros(state.num_rows, np.int64),
            narrowed(before, self.state),
            np.ones(state.num_rows, np.bool_),
            pa.nulls(state.num_rows, timing.kind),
            moment.watermark_us,
        )

    def _called(self, function: BatchReducer, groups: Groups) -> Reduced:
        """What a user's function makes of groups, checked and in the types of the state and the output."""
        reduced = function(groups)
        if not isinstance(reduced, Reduced):
            raise BadUpdate("result", "springtide.Reduced(state, output)", type(reduced).__name__)
        state = conform(reduced.state, self.state, "state")
        if state.num_rows != len(groups):
            raise BadUpdate("state", f"one row a key ({len(groups)})", f"{state.num_rows} rows")
        output = narrowed(conform(reduced.output, self.output, "output"), self.output)
        return Reduced(state, output, _mask(reduced.keep, len(groups)), reduced.timers)

    def _plain(self, groups: Groups, moment: Moment) -> Groups:
        """The same in the types that the user knows, with timers apart from the state."""
        rows = pa.schema([pa.field(n, self.rows.field(n).type) for n in groups.rows.column_names])
        keys, state = narrowed(groups.keys, self.key), narrowed(groups.state.select(self.state.names), self.state)
        timers = None if self.timing is None else one_array(groups.state.column(TIMER))
        plain = narrowed(groups.rows, rows)
        return replace(groups, keys=keys, rows=plain, state=state, timers=timers, now_us=moment.watermark_us)


def conform(table: pa.Table, schema: pa.Schema, what: str) -> pa.Table:
    """The table with exactly this schema's columns and types, but wide, or an error that says what is off."""
    if not isinstance(table, pa.Table):
        raise BadUpdate(what, "a pyarrow.Table", type(table).__name__)
    if any(table.column_names.count(n) != 1 for n in schema.names):
        raise BadUpdate(what, f"columns {schema.names}", f"columns {table.column_names}")
    try:
        return table.select(schema.names).cast(wide_schema(schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadUpdate(what, f"types {types_text(schema)}", f"types {types_text(table.schema)}: {error}") from error


def _mask(keep: npt.NDArray[np.bool_] | None, keys: int) -> npt.NDArray[np.bool_] | None:
    """The mask if it is one: numbers in its place would be inverted bit by bit, and forget every key."""
    if keep is None:
        return None
    mask = np.asarray(keep)
    if mask.dtype != np.bool_ or mask.shape != (keys,):
        raise BadUpdate("keep", f"one boolean a key ({keys})", f"an array of {mask.dtype} with shape {mask.shape}")
    return mask


def types_text(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
