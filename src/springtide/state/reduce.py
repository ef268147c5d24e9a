"""A user's reducer over keyed rows, with typed state."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.errors import BadUpdate
from springtide.state.layout import Layout
from springtide.state.logic import Arrival, Changes, Closed, Groups, Moment, sorted_rows
from springtide.state.position import Positions
from springtide.state.sides import ROW, SIDE, side_column
from springtide.state.wide import narrowed, wide_schema

Row = dict[str, Any]
KeyReducer = Callable[[Row, list[Row], Row | None], tuple[Row | None, Sequence[Row]]]
"""(key, rows, state or None) → (new state, or None to forget the key; output rows)."""


@dataclass(frozen=True)
class Reduced:
    """What a vectorised reducer returns: one state row a key, output rows, and whom to forget."""

    state: pa.Table
    output: pa.Table
    keep: npt.NDArray[np.bool_] | None = None


CoReducer = Callable[..., tuple[Row | None, Sequence[Row]]]
"""(key, rows of the first input, rows of the second, …, state or None) → the same."""

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
    late_us: int | None = field(default=None, init=False)

    @property
    def layout(self) -> Layout:
        return Layout(self.key, self.state, drops=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(n for n in self.rows.names if n not in self.key.names)

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        return Arrival(sorted_rows(positions, keys, rows, self.layout), rows.num_rows)

    def update(self, groups: Groups, moment: Moment) -> Changes:
        if not len(groups):
            return Changes(self.state.empty_table(), self.output.empty_table())
        reduced = self.reducer(self._plain(groups))
        if not isinstance(reduced, Reduced):
            raise BadUpdate("result", "springtide.Reduced(state, output)", type(reduced).__name__)
        state = conform(reduced.state, self.state, "state")
        if state.num_rows != len(groups):
            raise BadUpdate("state", f"one row a key ({len(groups)})", f"{state.num_rows} rows")
        output = narrowed(conform(reduced.output, self.output, "output"), self.output)
        return Changes(state, output, keep=_mask(reduced.keep, len(groups)))

    def _plain(self, groups: Groups) -> Groups:
        """The same in the types that the user knows."""
        rows = pa.schema([pa.field(n, self.rows.field(n).type) for n in groups.rows.column_names])
        keys, state = narrowed(groups.keys, self.key), narrowed(groups.state, self.state)
        return replace(groups, keys=keys, rows=narrowed(groups.rows, rows), state=state)

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        return Closed(self.output.empty_table())


def conform(table: pa.Table, schema: pa.Schema, what: str) -> pa.Table:
    """The table with exactly this schema's columns and types, but wide, or an error that says what is off."""
    if not isinstance(table, pa.Table):
        raise BadUpdate(what, "a pyarrow.Table", type(table).__name__)
    missing = [n for n in schema.names if n not in table.column_names]
    if missing:
        raise BadUpdate(what, f"columns {schema.names}", f"columns {table.column_names}")
    try:
        return table.select(schema.names).cast(wide_schema(schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadUpdate(what, f"types {_types(schema)}", f"types {_types(table.schema)}: {error}") from error


def _mask(keep: npt.NDArray[np.bool_] | None, keys: int) -> npt.NDArray[np.bool_] | None:
    """The mask if it is one: numbers in its place would be inverted bit by bit, and forget every key."""
    if keep is None:
        return None
    mask = np.asarray(keep)
    if mask.dtype != np.bool_ or mask.shape != (keys,):
        raise BadUpdate("keep", f"one boolean a key ({keys})", f"an array of {mask.dtype} with shape {mask.shape}")
    return mask


def _types(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


@dataclass(frozen=True)
class PerKey:
    """A key-by-key reducer as a vectorised one."""

    reduce: KeyReducer
    state: pa.Schema
    output: pa.Schema

    def __call__(self, groups: Groups) -> Reduced:
        rows, keys, old = groups.rows.to_pylist(), groups.keys.to_pylist(), groups.state.to_pylist()
        ends = np.append(groups.starts[1:], len(rows))
        nothing: Row = dict.fromkeys(self.state.names)
        states: list[Row] = []
        output: list[Row] = []
        keep = np.ones(len(groups), np.bool_)
        for i, key in enumerate(keys):
            before = old[i] if groups.known[i] else None
            result = self.reduce(key, rows[groups.starts[i] : ends[i]], before)
            if not isinstance(result, tuple) or len(result) != 2:
                raise BadUpdate("result", "(state or None, output rows)", repr(result)[:80])
            after, produced = result
            keep[i] = after is not None
            states.append(nothing if after is None else _checked(after, self.state, "state"))
            if not isinstance(produced, Iterable):
                raise BadUpdate("output rows", "a list of rows", type(produced).__name__)
            output.extend(_checked(row, self.output, "output row") for row in produced)
        return Reduced(_table(states, self.state, "state"), _table(output, self.output, "output"), keep)


@dataclass(frozen=True)
class BySide:
    """A reducer of several inputs as one of a single input, whose rows say which side they are of."""

    function: CoReducer
    sides: int

    def __call__(self, key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, Sequence[Row]]:
        of_side: list[list[Row]] = [[] for _ in range(self.sides)]
        for row in rows:
            own = row[side_column(row[SIDE])]
            of_side[row[SIDE]].append({name: value for name, value in own.items() if name != ROW})
        return self.function(key, *of_side, state)


def _checked(row: object, schema: pa.Schema, what: str) -> Row:
    if not isinstance(row, Mapping) or set(row) != set(schema.names):
        got = sorted(map(str, row)) if isinstance(row, Mapping) else type(row).__name__
        raise BadUpdate(what, f"a mapping with keys {sorted(schema.names)}", str(got))
    return dict(row)


def _table(rows: list[Row], schema: pa.Schema, what: str) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise BadUpdate(what, f"types {_types(schema)}", str(error)) from error
