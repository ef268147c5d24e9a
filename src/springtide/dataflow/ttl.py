"""How long keys are remembered, before a step knows its columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from springtide.dataflow.duration import Duration, ahead_us, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.event_column import beside_key, event_columns, require_timestamp
from springtide.dataflow.operations import Operation
from springtide.dataflow.reducing import Reduction
from springtide.errors import BadValue
from springtide.state.ahead import DEFAULT as AHEAD
from springtide.state.forgetting import NEWEST, Forgetting, Memory
from springtide.state.lateness import Lateness
from springtide.state.logic import Logic
from springtide.state.row_times import RowTimes


@dataclass(frozen=True)
class Ttl:
    """How long a key is remembered after its last row, by event time.

    `time` is the column with it, of each stream if there are several. A key goes once the newest event time of the
    step less `late` has reached the newest one of the key and `after`.

    >>> Ttl("1 hour", time="at", late="1 minute").after
    '1 hour'
    """

    after: Duration
    time: str | tuple[str, ...]
    late: Duration = "0 seconds"
    ahead: Duration | None = AHEAD
    """Rows whose event time is further ahead of the clock do not count; None if all do."""


@dataclass(frozen=True)
class Remembered:
    """An operation whose keys are forgotten a while after their last row."""

    operation: Operation
    memory: Memory

    @property
    def kind(self) -> str:
        return self.operation.kind

    @property
    def has_final(self) -> bool:
        return self.operation.has_final

    @property
    def lateness(self) -> tuple[Lateness, ...]:
        return self.operation.lateness

    @property
    def aggregates(self) -> Mapping[str, Any]:
        return getattr(self.operation, "aggregates", {})

    def describe(self) -> dict[str, Any]:
        by = "processing time" if self.memory.times is None else list(self.memory.times.columns)
        return {**self.operation.describe(), "ttl": by}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        if self.memory.times is not None:
            if NEWEST in rows.names:
                raise BadValue(f"expected no column named {NEWEST!r} with ttl= by event time, got {rows.names}")
            columns = self.memory.times.columns
            for column, own in zip(columns, beside_key(rows, key, sided=len(columns) > 1), strict=True):
                require_timestamp(own, column, key)
        return Forgetting(self.operation.bind(key, rows, slices), self.memory)


def remembered(step: str, operation: Operation, ttl: Duration | Ttl | None, inputs: int = 1) -> Operation:
    """The operation as it is, or with keys that are forgotten; a reducer with timers forgets by their clock."""
    if ttl is None:
        return operation
    timers = operation.timers if isinstance(operation, Reduction) else None
    if not isinstance(ttl, Ttl):
        return Remembered(
            operation, Memory(_span(step, ttl), *(() if timers is None else (timers.times, timers.late_us)))
        )
    times = RowTimes(event_columns(step, ttl.time, inputs), ahead_us(ttl.ahead))
    memory = Memory(_span(step, ttl.after), times, microseconds(ttl.late))
    if timers is not None and (timers.times, timers.late_us) != (memory.times, memory.late_us):
        raise BadGraph(step, "one clock for timers and ttl=: give ttl= as a time such as '1 hour'", repr(ttl))
    return Remembered(operation, memory)


def _span(step: str, after: Duration) -> int:
    span_us = microseconds(after)
    if span_us <= 0:
        raise BadGraph(step, "a ttl= above zero, such as '1 hour'", repr(after))
    return span_us
