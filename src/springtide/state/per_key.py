"""Reducers that are called key by key, as vectorised ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from springtide.state.errors import BadUpdate
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced, types_text
from springtide.state.sides import ROW, SIDE, side_column
from springtide.state.timers import Timer, clock_time

Row = dict[str, Any]
Result = tuple[Row | None, Sequence[Row]]
"""The new state, or None to forget the key; output rows."""
KeyReducer = Callable[..., Result]
"""(key, rows, state or None) → result; with timers, (key, rows, state or None, timer) → result."""
CoReducer = Callable[..., Result]
"""(key, rows of the first input, rows of the second, …, state or None) → result; with timers, the timer comes last."""
KeyTimer = Callable[[Row, Row, Timer], Result]
"""(key, state, timer) → result, called when the timer of a key rings."""


@dataclass(frozen=True)
class PerKey:
    """A key-by-key reducer as a vectorised one."""

    reduce: KeyReducer
    state: pa.Schema
    output: pa.Schema
    timed: bool = False
    """It takes the key's timer, too."""

    def __call__(self, groups: Groups) -> Reduced:
        rows = groups.rows.to_pylist()
        ends = np.append(groups.starts[1:], len(rows))

        def reduced(i: int, key: Row, state: Row | None, timer: Timer) -> object:
            own = rows[groups.starts[i] : ends[i]]
            return self.reduce(key, own, state, timer) if self.timed else self.reduce(key, own, state)

        return _each(groups, reduced, self.state, self.output)


@dataclass(frozen=True)
class PerTimer:
    """A function of a key whose timer has rung, as one of all such keys."""

    ring: KeyTimer
    state: pa.Schema
    output: pa.Schema

    def __call__(self, groups: Groups) -> Reduced:
        def rung(i: int, key: Row, state: Row | None, timer: Timer) -> object:
            assert state is not None
            return self.ring(key, state, timer)

        return _each(groups, rung, self.state, self.output)


@dataclass(frozen=True)
class BySide:
    """A reducer of several inputs as one of a single input, whose rows say which side they are of."""

    function: CoReducer
    sides: int

    def __call__(self, key: Row, rows: list[Row], state: Row | None, *timer: Timer) -> Result:
        of_side: list[list[Row]] = [[] for _ in range(self.sides)]
        for row in rows:
            own = row[side_column(row[SIDE])]
            of_side[row[SIDE]].append({name: value for name, value in own.items() if name != ROW})
        return self.function(key, *of_side, state, *timer)


def _each(
    groups: Groups, function: Callable[[int, Row, Row | None, Timer], object], state: pa.Schema, output: pa.Schema
) -> Reduced:
    """Call a function with the number, the key, the state and the timer of each key."""
    nothing: Row = dict.fromkeys(state.names)
    before = groups.state.to_pylist()
    set_for = [None] * len(groups) if groups.timers is None else groups.timers.to_pylist()
    now = None if groups.timers is None else clock_time(groups.now_us, groups.timers.type.tz)
    states: list[Row] = []
    produced: list[Row] = []
    timers = []
    keep = np.ones(len(groups), np.bool_)
    for i, key in enumerate(groups.keys.to_pylist()):
        timer = Timer(now, set_for[i])
        result = function(i, key, before[i] if groups.known[i] else None, timer)
        if not isinstance(result, tuple) or len(result) != 2:
            raise BadUpdate("result", "(state or None, output rows)", repr(result)[:80])
        after, rows = result
        keep[i] = after is not None
        states.append(nothing if after is None else _checked(after, state, "state"))
        timers.append(timer.at)
        if not isinstance(rows, Iterable):
            raise BadUpdate("output rows", "a list of rows", type(rows).__name__)
        produced.extend(_checked(row, output, "output row") for row in rows)
    found = Reduced(_table(states, state, "state"), _table(produced, output, "output"), keep)
    if groups.timers is None:
        return found
    return replace(found, timers=_timers(timers, groups.timers.type))


def _timers(times: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(times, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise BadUpdate("timer", f"a datetime that fits {kind}", str(error)) from error


def _checked(row: object, schema: pa.Schema, what: str) -> Row:
    if not isinstance(row, Mapping) or set(row) != set(schema.names):
        got = sorted(map(str, row)) if isinstance(row, Mapping) else type(row).__name__
        raise BadUpdate(what, f"a mapping with keys {sorted(schema.names)}", str(got))
    return dict(row)


def _table(rows: list[Row], schema: pa.Schema, what: str) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        raise BadUpdate(what, f"types {types_text(schema)}", str(error)) from error
