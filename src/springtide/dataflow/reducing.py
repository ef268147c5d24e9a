"""A step with a reducer, before it knows its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from springtide.dataflow.duration import Duration, ahead_us, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.event_column import beside_key, event_columns, require_timestamp
from springtide.dataflow.fields import Fields, schema_of
from springtide.errors import BadValue
from springtide.state.lateness import Lateness
from springtide.state.logic import Logic
from springtide.state.per_key import KeyReducer, KeyTimer, PerTimer
from springtide.state.reduce import BatchReducer, ReduceLogic
from springtide.state.row_times import RowTimes
from springtide.state.timers import Timing

Ring = TypeVar("Ring", KeyTimer, BatchReducer)
Reducer = TypeVar("Reducer", KeyReducer, BatchReducer)


@dataclass(frozen=True)
class Timers:
    """What rings, and by which clock."""

    ring: BatchReducer
    times: RowTimes | None
    """None for timers by the wall clock."""
    late_us: int

    def bind(self, inputs: Sequence[pa.Schema], key: pa.Schema) -> Timing:
        """The same for inputs with these columns, the key aside."""
        if self.times is None:
            return Timing(self.ring)
        zones = set()
        for columns, rows in zip(self.times.columns, inputs, strict=True):
            require_timestamp(rows, columns, key)
            zones.add(rows.field(columns).type.tz)
        if len(zones) > 1:
            raise BadValue(f"time=: expected event times of one time zone in all inputs, got {sorted(map(str, zones))}")
        return Timing(self.ring, self.times, self.late_us, zones.pop())


@dataclass(frozen=True)
class Reduction:
    reducer: BatchReducer
    state: pa.Schema
    output: pa.Schema
    timers: Timers | None = None
    kind: str = "reduce"
    has_final: bool = False
    sided: bool = False
    """Its rows are those of several inputs."""
    lateness: tuple[Lateness, ...] = ()

    def describe(self) -> dict[str, Any]:
        if self.timers is None:
            return {}
        return {"timers": "processing time" if self.timers.times is None else list(self.timers.times.columns)}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        timing = None if self.timers is None else self.timers.bind(beside_key(rows, key, sided=self.sided), key)
        return ReduceLogic(key, rows, self.reducer, self.state, self.output, timing)


def reducer_of(step: str, function: Reducer) -> Reducer:
    """A user's function; BadGraph if it is none."""
    if not callable(function):
        raise BadGraph(step, "a function of a key's rows and its state", repr(function))
    return function


def state_of(step: str, state: Fields) -> pa.Schema:
    """The columns of a reducer's state; BadGraph if there are none, as Arrow has no rows without a column."""
    found = schema_of(state)
    if not found.names:
        raise BadGraph(step, "state= one or more columns, also of a reducer that keeps no state", "none")
    return found


def per_timer(step: str, on_timer: KeyTimer | None, state: pa.Schema, output: pa.Schema) -> PerTimer | None:
    """What rings for one key after the other, as what rings for all of them; None if nothing does."""
    return None if on_timer is None else PerTimer(_ringing(step, on_timer), state, output)


def timers_of(
    step: str, ring: BatchReducer | None, time: object, inputs: int, late: Duration, ahead: Duration | None
) -> Timers | None:
    """A reducer's timers as they were asked for; None if it has none."""
    if ring is None:
        if time is not None:
            raise BadGraph(step, "on_timer= a function that is called when a timer rings, with time=", "time= alone")
        return None
    times = None if time is None else RowTimes(event_columns(step, time, inputs), ahead_us(ahead))
    return Timers(_ringing(step, ring), times, microseconds(late))


def _ringing(step: str, function: Ring) -> Ring:
    if not callable(function):
        raise BadGraph(step, "on_timer= a function that is called when a timer rings", repr(function))
    return function
