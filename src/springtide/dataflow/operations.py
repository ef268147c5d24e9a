"""What a keyed step does, before it knows the columns it will get."""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol

import pyarrow as pa

from springtide.dataflow.event_column import require_timestamp
from springtide.errors import BadValue
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.estimate import result_names
from springtide.state.aggregates.inputs import check_conditions
from springtide.state.dedupe import DedupeLogic, Within
from springtide.state.logic import Logic
from springtide.state.session import END, START, Gap, SessionLogic
from springtide.state.window import FINAL, WINDOW_END, WINDOW_START, Window


class Operation(Protocol):
    """A keyed operation that can be bound to columns."""

    @property
    def kind(self) -> str:
        """Its name in the checkpoint."""

    @property
    def has_final(self) -> bool:
        """Whether its output tells final rows from updates."""

    def describe(self) -> dict[str, Any]:
        """What gives its state a meaning beyond its columns; must not change between two starts."""

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        """The logic for these columns; ValueError or TypeError if they do not fit."""


@dataclass(frozen=True)
class Aggregation:
    aggregates: Mapping[str, Aggregate]
    window: Window | None = None

    @property
    def kind(self) -> str:
        return "aggregate" if self.window is None else "window-aggregate"

    @property
    def has_final(self) -> bool:
        return self.window is not None

    def describe(self) -> dict[str, Any]:
        window: dict[str, Any] | None = None
        if self.window is not None:
            window = {"size_us": self.window.size_us, "slide_us": self.window.slide_us}
            window |= {"by": "processing time"} if self.window.column is None else {}
        return {"aggregates": {name: _name_of(a) for name, a in self.aggregates.items()}, "window": window}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        taken = set(key.names) | ({WINDOW_START, WINDOW_END, FINAL} if self.window else set())
        clash = sorted(taken & {n for name, a in self.aggregates.items() for n in result_names(name, a)})
        if clash:
            raise BadValue(f"the results {clash} are named like columns of the key or the window; rename them")
        added = {WINDOW_START, WINDOW_END, FINAL} if self.window else set()
        confusing = [n for n in key.names if n in added or n.rpartition(".")[0] in self.aggregates]
        if confusing:
            raise BadValue(f"the key columns {confusing} are named like columns that the step adds; rename them")
        if self.window is not None and self.window.column is not None:
            require_timestamp(rows, self.window.column)
        check_conditions(self.aggregates, rows)
        return AggregateLogic(key, rows, dict(self.aggregates), slices, self.window)


@dataclass(frozen=True)
class Sessions:
    aggregates: Mapping[str, Aggregate]
    gap: Gap
    kind: str = "session-aggregate"
    has_final: bool = True

    def describe(self) -> dict[str, Any]:
        return {"aggregates": {name: _name_of(a) for name, a in self.aggregates.items()}, "gap_us": self.gap.gap_us}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        added = {START, END, FINAL}
        clash = sorted(
            (set(key.names) | added) & {n for name, a in self.aggregates.items() for n in result_names(name, a)}
        )
        if clash:
            raise BadValue(f"the results {clash} are named like columns of the key or the session; rename them")
        confusing = sorted(added & set(key.names))
        if confusing:
            raise BadValue(f"the key columns {confusing} are named like columns that the step adds; rename them")
        require_timestamp(rows, self.gap.column)
        check_conditions(self.aggregates, rows)
        return SessionLogic(key, rows, dict(self.aggregates), self.gap)


@dataclass(frozen=True)
class Deduplication:
    within: Within | None = None
    kind: str = "dedupe"
    has_final: bool = False

    def describe(self) -> dict[str, Any]:
        return {}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        if self.within is not None:
            require_timestamp(rows, self.within.column)
        return DedupeLogic(key, rows, self.within)


def _name_of(aggregate: Aggregate) -> str:
    """The same at every start: the repr of any other object may hold its address."""
    return repr(aggregate) if is_dataclass(aggregate) else type(aggregate).__name__
