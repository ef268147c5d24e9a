"""The join of two streams, before it knows their columns."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from springtide.conditions.condition import SqlCondition
from springtide.dataflow.duration import signed_microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.join_condition import resolved
from springtide.errors import BadType, BadValue
from springtide.state.as_of import AsOfLogic
from springtide.state.buffer import Side
from springtide.state.join import HOW, JoinLogic, Where, Within
from springtide.state.logic import Logic
from springtide.state.sides import ROW, side_schemas
from springtide.state.timed_sides import TimedSides

SUFFIX = "_right"
"""What is added to the name of a right column that the key or the left side has, too."""


@dataclass(frozen=True)
class Joining:
    how: str
    timed: TimedSides
    within: Within | None = None
    where: Where | None = None
    suffix: str = SUFFIX
    kind: str = "join"
    has_final: bool = False

    def describe(self) -> dict[str, Any]:
        within = None if self.within is None else [self.within.low_us, self.within.high_us]
        return {"how": self.how, "time": list(self.timed.times), "within": within}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        left, right = side_schemas(rows)
        for name, column, own in zip(("left", "right"), self.timed.times, (left, right), strict=False):
            require_time(name, column, own, key)
        output = joined_schema(key, left, right, self.suffix)
        left_time, right_time = self.timed.times or (None, None)
        keeps_left, keeps_right = HOW[self.how]
        ours, theirs = Side(0, left, left_time, keeps_left), Side(1, right, right_time, keeps_right)
        where = self.where
        if isinstance(where, SqlCondition):
            where = resolved(where, key, left, right, self.suffix, output)
        return JoinLogic(key, ours, theirs, output, self.timed, self.within, where)


@dataclass(frozen=True)
class AsOf:
    timed: TimedSides
    outer: bool = True
    tolerance_us: int | None = None
    suffix: str = SUFFIX
    kind: str = "as-of"
    has_final: bool = False

    def describe(self) -> dict[str, Any]:
        return {"time": list(self.timed.times), "tolerance_us": self.tolerance_us, "outer": self.outer}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        left, right = side_schemas(rows)
        for name, column, own in zip(("left", "right"), self.timed.times, (left, right), strict=True):
            require_time(name, column, own, key)
        left_time, right_time = self.timed.times
        output = joined_schema(key, left, right, self.suffix)
        ours, theirs = Side(0, left, left_time), Side(1, right, right_time)
        return AsOfLogic(key, ours, theirs, output, self.timed, self.outer, self.tolerance_us)


@dataclass(frozen=True)
class Condition:
    """An Arrow expression over the joined columns, as a function."""

    expression: pc.Expression

    def __call__(self, joined: pa.Table) -> pa.ChunkedArray:
        table = acero.Declaration("table_source", acero.TableSourceNodeOptions(joined))
        fits = acero.Declaration("project", acero.ProjectNodeOptions([self.expression], ["fits"]), inputs=[table])
        return fits.to_table(use_threads=False).column("fits")


def require_time(side: str, column: str, own: pa.Schema, key: pa.Schema) -> None:
    """Refuse a time that is part of the key, that is not there, or that is no timestamp."""
    if column in key.names:
        raise BadValue(f"time=: {column!r} is part of the key, so rows of different times would never meet")
    if column not in own.names:
        raise BadValue(f"time=: expected a timestamp among {own.names} of the {side} stream, got {column!r}")
    kind = own.field(column).type
    if not pa.types.is_timestamp(kind):
        raise BadType(f"time=: expected column {column!r} of the {side} stream to be a timestamp, got {kind}")


def joined_schema(key: pa.Schema, left: pa.Schema, right: pa.Schema, suffix: str) -> pa.Schema:
    """The key, the left columns, the right columns; of two with one name, the right one gets the suffix."""
    fields = [*key, *(field for field in left if field.name != ROW)]
    taken = {field.name for field in fields}
    for field in right:
        if field.name != ROW:
            fields.append(field.with_name(field.name + suffix) if field.name in taken else field)
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadValue(f"the columns {twice} would be there twice: rename some before the join, or choose a suffix=")
    return pa.schema([field.with_nullable(True) for field in fields])


def checked_how(step: str, how: object) -> str:
    """A kind of join; BadGraph if there is none of that name."""
    if how not in HOW:
        raise BadGraph(step, f"how= one of {sorted(HOW)}", repr(how))
    return str(how)


def time_columns(step: str, time: object) -> tuple[str, ...]:
    """The column with the event time of each side; none if nothing is said."""
    if time is None:
        return ()
    if not isinstance(time, tuple | list) or len(time) != 2 or not all(isinstance(column, str) for column in time):
        raise BadGraph(step, 'time= two column names, of the left and the right stream, as ("at", "at")', repr(time))
    return time[0], time[1]


def interval(step: str, within: object) -> Within | None:
    """How much later the right row may be; BadGraph for an interval that is empty or has no end."""
    if within is None:
        return None
    example = 'within= the least and the most time from the left row to the right one, as ("-5 minutes", "30 minutes")'
    if not isinstance(within, tuple | list) or len(within) != 2:
        raise BadGraph(step, example, repr(within))
    try:
        return Within(*map(signed_microseconds, within))
    except BadValue as error:
        raise BadGraph(step, example, f"{within!r}: {error}") from error
