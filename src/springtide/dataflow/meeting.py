"""How a person writes that streams meet: joins, and reducers of several streams.

The words of the examples are those of `springtide.dataflow.stream`.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.compute as pc

from springtide.dataflow.duration import Duration, ahead_us, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import Keyed, Node, Sides
from springtide.dataflow.join_condition import read_condition
from springtide.dataflow.joining import (
    SUFFIX,
    AsOf,
    Condition,
    Joining,
    checked_how,
    checked_suffix,
    span_of,
    time_columns,
)
from springtide.dataflow.operations import Operation
from springtide.dataflow.reducing import Reduction, per_timer, state_of, timers_of
from springtide.dataflow.restrictions import Restrictions
from springtide.dataflow.ttl import Ttl, remembered
from springtide.state.ahead import DEFAULT as AHEAD
from springtide.state.join import Where
from springtide.state.per_key import BySide, CoReducer, KeyTimer, PerKey
from springtide.state.reduce import BatchReducer
from springtide.state.spans import SameWindow
from springtide.state.timed_sides import TimedSides

if TYPE_CHECKING:
    from springtide.dataflow.stream import Stream


class Builder(Protocol):
    """Collects the nodes of one app."""

    def add(self, node: Node) -> None:
        """Add a step; its name must be new."""

    def restrict(self, sink: str, restrictions: Restrictions) -> None:
        """Say what holds for a query."""


class MeetingStream(ABC):
    """A stream with a key, whose rows meet those of other streams with equal keys."""

    def __init__(self, builder: Builder, step: str, key: tuple[str, ...]) -> None:
        self.builder = builder
        self.step = step
        self.key = key

    @abstractmethod
    def _then(self, node: Keyed, inputs: tuple[str, ...]) -> "Stream":
        """Add a step with state; its rows. `inputs` are the steps whose rows it gets."""

    def join(
        self,
        name: str,
        other: "MeetingStream",
        *,
        how: str = "inner",
        time: tuple[str, str] | None = None,
        within: tuple[Duration, Duration] | None = None,
        window: Duration | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        where: "str | Where | pc.Expression | None" = None,
        suffix: str = SUFFIX,
        ttl: Duration | Ttl | None = None,
    ) -> "Stream":
        """Rows of this stream, the left one, with rows of another one that have the same key.

        With `time`, the columns with the event time of the left and of the right stream, and `within`, how much later
        the right row may be (less than zero if it may be earlier), rows wait no longer than a match can come. With
        `window` in place of `within`, rows match that are in the same window: windows of that length follow each other,
        and the joined rows also have the columns `window_start` and `window_end`. Without
        them every row waits for ever, or for `ttl` after the last row of its key, and `how` can only be `"inner"`. With
        `"left"`, `"right"` or `"full"`, rows of that side, or of both, that find no match come once, with nulls, when
        the watermark says that none can come: it trails the newest event time of the side that has come least far by
        `late`. Later rows are dropped and counted.

        `where` is a further condition: SQL text such as `"left.amount <= right.limit"`, as the aggregates take it, an
        Arrow expression over the joined columns, or a function from a table of them to a column of booleans. Null keys
        match nothing. Of two columns with one name, the right one gets the `suffix`.

        >>> orders, payments = clicks.key_by("user"), clicks.transform("paid", lambda df: df).key_by("user")
        >>> paid = orders.join("paid-orders", payments, time=("at", "at"), within=("0 seconds", "30 minutes"))
        >>> query = paid.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "paid-orders", [{"user": str, "at": datetime}, {"user": str, "at": datetime}])
        >>> harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12, 0)}], [])
        []
        >>> found = harness.epoch([], [{"user": "ann", "at": datetime(2026, 1, 1, 12, 20)}])
        >>> [(row["user"], row["at"].minute, row["at_right"].minute) for row in found]
        [('ann', 0, 20)]
        """
        kind, times, span = checked_how(name, how), time_columns(name, time), span_of(name, within, window)
        if (span is None) != (not times):
            got = f"time={time!r}, within={within!r}, window={window!r}"
            raise BadGraph(name, "time= and one of within= and window=, or none of them", got)
        if span is None and kind != "inner":
            expected = f"time= and within= or window= for how={how!r}: else a match might come at any time"
            raise BadGraph(name, expected, "neither")
        if where is not None and not callable(where) and not isinstance(where, str | pc.Expression):
            raise BadGraph(name, "where= SQL text such as 'left.due <= right.paid'", repr(where))
        if span is not None and ttl is not None:
            raise BadGraph(name, "no ttl= with within= or window=: rows go when no match can come", f"ttl={ttl!r}")
        fits = Condition(where) if isinstance(where, pc.Expression) else where
        if isinstance(fits, str):
            fits = read_condition(name, fits, self.key, getattr(other, "key", ()))
        window_us = span.size_us if isinstance(span, SameWindow) else 1
        timed = TimedSides(times, None if span is None else microseconds(late), ahead_us(ahead), window_us)
        joining = Joining(kind, timed, span, fits, checked_suffix(name, suffix))
        return self._sided(name, (other,), remembered(name, joining, ttl, 2))

    def as_of(
        self,
        name: str,
        other: "MeetingStream",
        *,
        time: tuple[str, str],
        tolerance: Duration | None = None,
        how: str = "left",
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        suffix: str = SUFFIX,
    ) -> "Stream":
        """Each row of this stream with the newest row of another one at or before its time, of the same key.

        `time` are the columns with the event time of this stream and of the other. A row comes once the watermark has
        passed it, as the other stream's rows for it may come until then: the watermark trails the newest event time of
        the stream that has come least far by `late`. Rows that are later still are dropped and counted. A row for which
        there is none, or none younger than `tolerance`, comes with nulls, or with `how="inner"` not at all.

        >>> rates = clicks.transform("rates", lambda df: df).key_by("currency")
        >>> query = clicks.key_by("currency").as_of("priced", rates, time=("at", "at")).sink("out", sinks.memory())
        >>> orders, rate = {"currency": str, "at": datetime}, {"currency": str, "at": datetime, "rate": float}
        >>> harness = StepHarness(app, "priced", [orders, rate])
        >>> noon, later = datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 18)
        >>> steps = [{"currency": "EUR", "at": noon, "rate": 1.1}, {"currency": "EUR", "at": later, "rate": 1.2}]
        >>> harness.epoch([{"currency": "EUR", "at": noon}, {"currency": "EUR", "at": later}], steps)
        []
        >>> [(row["at"].hour, row["rate"]) for row in harness.epoch([], [])]
        [(12, 1.1)]
        """
        times = time_columns(name, time)
        if not times:
            raise BadGraph(name, 'time= two column names, as ("at", "at")', "None")
        if how not in ("left", "inner"):
            raise BadGraph(name, "how='left' or how='inner'", repr(how))
        timed = TimedSides(times, microseconds(late), ahead_us(ahead))
        oldest_us = None if tolerance is None else microseconds(tolerance)
        return self._sided(name, (other,), AsOf(timed, how == "left", oldest_us, checked_suffix(name, suffix)))

    def co_reduce(
        self,
        name: str,
        *others_and_function: "MeetingStream | CoReducer",
        state: Fields,
        output: Fields,
        on_timer: KeyTimer | None = None,
        time: tuple[str, ...] | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        ttl: Duration | Ttl | None = None,
    ) -> "Stream":
        """A reducer over this stream and others with keys of the same types, called for each key that has rows.

        The function comes last: `(key, rows of this stream, rows of each other one, state) → (state, output rows)`.
        Otherwise it is as with `reduce`, timers and `ttl` included; `time` names the column with the event time in each
        stream. The columns of the key have the names that they have in this stream.

        >>> def balance(key, orders, payments, state):
        ...     due = sum(o["price"] for o in orders) - sum(p["paid"] for p in payments)
        ...     due += state["due"] if state else 0
        ...     return ({"due": due} if due else None), [{"user": key["user"], "due": due}]
        >>> payments = app.source("payments", sources.generator(10)).key_by("payer")
        >>> due = {"due": int}
        >>> open_ = clicks.key_by("user").co_reduce("open", payments, balance, state=due, output={"user": str, **due})
        >>> query = open_.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "open", [{"user": str, "price": int}, {"payer": str, "paid": int}])
        >>> harness.epoch([{"user": "ann", "price": 5}], [{"payer": "ann", "paid": 2}])
        [{'user': 'ann', 'due': 3}]
        >>> harness.epoch([], [{"payer": "ann", "paid": 3}])
        [{'user': 'ann', 'due': 0}]
        """
        others, function = _function_of(name, others_and_function)
        state, output = state_of(name, state), schema_of(output)
        sides = 1 + len(others)
        reducer = PerKey(BySide(function, sides), state, output, timed=on_timer is not None)
        ring = per_timer(name, on_timer, state, output)
        timers = timers_of(name, ring, time, sides, late, ahead)
        operation = Reduction(reducer, state, output, timers, kind="co-reduce", sided=True)
        return self._sided(name, others, remembered(name, operation, ttl, sides))

    def co_reduce_batches(
        self,
        name: str,
        *others_and_function: "MeetingStream | BatchReducer",
        state: Fields,
        output: Fields,
        on_timer: BatchReducer | None = None,
        time: tuple[str, ...] | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        ttl: Duration | Ttl | None = None,
    ) -> "Stream":
        """The vectorised form of `co_reduce`: `Groups → Reduced` over all keys of an instance at once.

        `groups.side(0)` are the groups with the rows of this stream alone, `groups.side(1)` with those of the next one.
        """
        others, function = _function_of(name, others_and_function)
        state, output = state_of(name, state), schema_of(output)
        sides = 1 + len(others)
        timers = timers_of(name, on_timer, time, sides, late, ahead)
        operation = Reduction(function, state, output, timers, kind="co-reduce", sided=True)
        return self._sided(name, others, remembered(name, operation, ttl, sides))

    def _sided(self, name: str, others: tuple[Any, ...], operation: Operation) -> "Stream":
        """A step with several inputs: their rows come on one way."""
        for other in others:
            if not isinstance(other, MeetingStream):
                raise BadGraph(name, "a keyed stream, such as payments.key_by('order')", repr(other))
            if other.builder is not self.builder:
                raise BadGraph(name, "streams of one app", "a stream of another app")
            if len(other.key) != len(self.key):
                raise BadGraph(name, f"keys of {len(self.key)} columns, as {self.key}", repr(other.key))
        sides = (self, *others)
        way = Sides(f"{name}-sides", tuple(s.step for s in sides), tuple(s.key for s in sides), name)
        self.builder.add(way)
        return self._then(Keyed(name, (way.name,), self.key, operation), way.parents)


def _function_of(name: str, others_and_function: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """The other streams, and the function that comes after them."""
    *others, function = others_and_function or (None,)
    if not others or not callable(function):
        got = "no other stream" if callable(function) else repr(function)
        raise BadGraph(name, "other keyed streams and then a function of all their rows", got)
    return tuple(others), function
