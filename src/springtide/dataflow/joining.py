"""The join of two streams, before it knows their columns."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from springtide.conditions.condition import SqlCondition
from springtide.dataflow.duration import Duration, microseconds, signed_microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.join_condition import resolved
from springtide.errors import BadType, BadValue
from springtide.state.as_of import AsOfLogic
from springtide.state.buffer import Side
from springtide.state.join import HOW, JoinLogic, Where
from springtide.state.lateness import Lateness
from springtide.state.logic import Logic
from springtide.state.sides import ROW, side_schemas
from springtide.state.spans import SameWindow, Span, Within
from springtide.state.timed_sides import TimedSides

SUFFIX = "_right"
"""What is added to the name of a right column that the key or the left side has, too."""


@dataclass(frozen=True)
class Joining:
    how: str
    timed: TimedSides
    span: Span | None = None
    where: Where | None = None
    suffix: str = SUFFIX
    kind: str = "join"
    has_final: bool = False

    @property
    def lateness(self) -> tuple[Lateness, ...]:
        return self.timed.by_side

    def describe(self) -> dict[str, Any]:
        span = self.span
        bounds: dict[str, Any] = {"within": [span.low_us, span.high_us] if isinstance(span, Within) else None}
        bounds |= {"window_us": span.size_us} if isinstance(span, SameWindow) else {}
        return {"how": self.how, "time": list(self.timed.times), **bounds}

    def bind(self, key: pa.Schema, rows: pa.Schema, slices: int) -> Logic:
        left, right = side_schemas(rows)
        for name, column, own in zip(("left", "right"), self.timed.times, (left, right), strict=False):
            require_time(name, column, own, key)
        left_time, right_time = self.timed.times or (None, None)
        added = self._added(left, right)
        common = pa.schema([*key, *added])
        output = joined_schema(common, left, right, self.suffix)
        keeps_left, keeps_right = HOW[self.how]
        ours, theirs = Side(0, left, left_time, keeps_left), Side(1, right, right_time, keeps_right)
        where = self.where
        if isinstance(where, SqlCondition):
            where = resolved(where, common, left, right, self.suffix, output)
        elif isinstance(where, Condition):
            where.check(output)
        return JoinLogic(key, ours, theirs, output, self.timed, self.span, where)

    def _added(self, left: pa.Schema, right: pa.Schema) -> list[pa.Field]:
        """The columns that the span adds; those with a time need one kind of time on both sides."""
        if self.span is None:
            return []
        kinds = [own.field(column).type for own, column in zip((left, right), self.timed.times, strict=True)]
        added = self.span.fields(kinds[0])
        if added and kinds[0].tz != kinds[1].tz:
            raise BadType(f"window=: expected event times of one time zone, got {kinds[0]} and {kinds[1]}")
        return added


@dataclass(frozen=True)
class AsOf:
    timed: TimedSides
    outer: bool = True
    tolerance_us: int | None = None
    suffix: str = SUFFIX
    kind: str = "as-of"
    has_final: bool = False

    @property
    def lateness(self) -> tuple[Lateness, ...]:
        return self.timed.by_side

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

    def check(self, joined: pa.Schema) -> None:
        """Raise BadValue if rows with these columns have no truth for it."""
        try:
            found = self(joined.empty_table()).type
        except pa.ArrowException as error:
            expected = f"an expression over columns among {joined.names}"
            raise BadValue(f"where={self.expression}: expected {expected}, got {str(error).splitlines()[0]}") from error
        if found != pa.bool_():
            raise BadValue(f"where={self.expression}: expected something that is true or false, got {found}")


def require_time(side: str, column: str, own: pa.Schema, key: pa.Schema) -> None:
    """Refuse a time that is part of the key, that is not there, or that is no timestamp."""
    if column not in own.names and column in key.names:
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
    if not isinstance(how, str) or how not in HOW:
        raise BadGraph(step, f"how= one of {sorted(HOW)}", repr(how))
    return how


def checked_suffix(step: str, suffix: object) -> str:
    """What is added to names; BadGraph if it is no text."""
    if not isinstance(suffix, str):
        raise BadGraph(step, "suffix= text such as '_right'", repr(suffix))
    return suffix


def time_columns(step: str, time: object) -> tuple[str, ...]:
    """The column with the event time of each side; none if nothing is said."""
    if time is None:
        return ()
    if not isinstance(time, tuple | list) or len(time) != 2 or not all(isinstance(column, str) for column in time):
        raise BadGraph(step, 'time= two column names, of the left and the right stream, as ("at", "at")', repr(time))
    return time[0], time[1]


def span_of(step: str, within: object, window: Duration | None) -> Span | None:
    """How far apart matches may be; BadGraph if both are said, or one that makes no sense."""
    if window is None:
        return interval(step, within)
    if within is not None:
        raise BadGraph(step, "within= or window=, not both", f"within={within!r}, window={window!r}")
    try:
        return SameWindow(microseconds(window))
    except BadValue as error:
        raise BadGraph(step, "window= how long the windows are, as '10 seconds'", f"{window!r}: {error}") from error


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
