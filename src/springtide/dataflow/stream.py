"""Streams: how a person writes the graph.

In the examples `clicks` is a stream of an `app`, and a `StepHarness` of `springtide.testing` shows what a step does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from springtide.dataflow.duration import Duration, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import FINAL_ONLY, UPDATES, Keyed, MapBatches, Node, Sides, Sink, Transform, Union
from springtide.dataflow.joining import SUFFIX, AsOf, Condition, Joining, checked_how, interval, time_columns
from springtide.dataflow.operations import Aggregation, Deduplication, Operation, Reduction, Sessions
from springtide.dataflow.restrictions import NONE, Restrictions
from springtide.dataflow.sink_spec import Publisher, SinkSpec, as_sink
from springtide.ids import valid_name
from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.estimate import result_names
from springtide.state.ahead import DEFAULT as AHEAD
from springtide.state.dedupe import Within as Remembered
from springtide.state.join import Where
from springtide.state.reduce import BatchReducer, BySide, CoReducer, KeyReducer, PerKey
from springtide.state.session import Gap
from springtide.state.timed_sides import TimedSides
from springtide.state.window import FINAL, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Builder(Protocol):
    """Collects the nodes of one app."""

    def add(self, node: Node) -> None:
        """Add a step; its name must be new."""

    def restrict(self, sink: str, restrictions: Restrictions) -> None:
        """Say what holds for a query."""


class Stream:
    """Rows that flow from one step to the next. Each method adds a named step, or a sink."""

    def __init__(self, builder: Builder, step: str, *, has_final: bool = False) -> None:
        self.builder = builder
        self.step = step
        self._has_final = has_final

    def _then(self, node: Node) -> "Stream":
        self.builder.add(node)
        return Stream(self.builder, node.name)

    def transform(self, name: str, function: "Callable[[DataFrame], DataFrame]") -> "Stream":
        """Any stateless DataFrame → DataFrame function: select, filter, explode, join with a table.

        >>> clicks.transform("lower", lambda df: df.selectExpr("lower(user) AS user")).step
        'lower'
        """
        return self._then(Transform(name, (self.step,), function))

    def filter(self, name: str, condition: "Column | str") -> "Stream":
        """Only the rows for which a condition holds: a SQL string or a Column.

        >>> clicks.filter("dear", "price > 10").step
        'dear'
        """
        stream = self._then(Transform(name, (self.step,), lambda df: df.filter(condition)))
        stream._has_final = self._has_final
        return stream

    def map_batches(self, name: str, function: Callable[[pa.Table], pa.Table], output: Fields) -> "Stream":
        """A function from Arrow table to Arrow table, run on workers; `output` names its columns.

        >>> def users(rows):
        ...     return rows.select(["user"])
        >>> query = clicks.map_batches("users", users, {"user": str}).sink("out", sinks.memory())
        >>> StepHarness(app, "users", {"user": str, "price": int}).epoch([{"user": "ann", "price": 3}])
        [{'user': 'ann'}]
        """
        return self._then(MapBatches(name, (self.step,), function, schema_of(output)))

    def union(self, name: str, *others: "Stream") -> "Stream":
        """The rows of this stream and of others with the same columns.

        >>> more = app.source("more", sources.generator(10))
        >>> clicks.union("both", more).step
        'both'
        """
        if any(other.builder is not self.builder for other in others):
            raise BadGraph(name, "streams of one app", "a stream of another app")
        return self._then(Union(name, (self.step, *(other.step for other in others))))

    def key_by(self, *columns: str) -> "KeyedStream":
        """Rows of equal key are brought together, for the keyed step that follows.

        >>> clicks.key_by("user", "country").key
        ('user', 'country')
        """
        if not columns or not all(isinstance(c, str) for c in columns):
            raise BadGraph(self.step, "key_by with one or more column names", repr(columns))
        if len(set(columns)) != len(columns):
            raise BadGraph(self.step, "key_by with different column names", repr(columns))
        return KeyedStream(self.builder, self.step, columns)

    def sink(self, name: str, spec: SinkSpec | Publisher, *, mode: str = UPDATES) -> "Query":
        """Publish each epoch's rows; `mode="final"` publishes only rows of closed windows.

        What is returned can be told what the query is worth, for the time when there is more load than machine.

        >>> clicks.key_by("user").aggregate("count", n=agg.count()).sink("out", sinks.memory()).name
        'out'
        """
        if mode not in (UPDATES, FINAL_ONLY):
            raise BadGraph(name, f"mode {UPDATES!r} or {FINAL_ONLY!r}", repr(mode))
        if mode == FINAL_ONLY and not self._has_final:
            raise BadGraph(
                name,
                f"a windowed stream with its {FINAL!r} column for mode={FINAL_ONLY!r}",
                f"step {self.step!r}, whose rows are never final",
            )
        sink = as_sink(spec)
        if sink is None:
            raise BadGraph(name, "a sink from springtide.sinks", repr(spec))
        self.builder.add(Sink(name, (self.step,), sink, mode))
        return Query(self.builder, name)


class Query:
    """What flows into one sink, and what its owner accepts of it under overload."""

    def __init__(self, builder: Builder, name: str, restrictions: Restrictions = NONE) -> None:
        self.builder = builder
        self.name = name
        self._restrictions = restrictions

    def with_minimum_accuracy(self, accuracy: float) -> "Query":
        """Under overload, rows may be shed as long as this share of the sources' rows is processed, 0 to 1.

        >>> query = clicks.sink("raw", sinks.noop()).with_minimum_accuracy(0.4)
        """
        return self._restricted(self._restrictions.with_minimum_accuracy(self.name, accuracy))

    def with_priority(self, priority: int) -> "Query":
        """Queries of lower priority give way before this one; 0 unless said.

        >>> query = clicks.sink("urgent", sinks.noop()).with_minimum_accuracy(0.9).with_priority(2)
        """
        return self._restricted(self._restrictions.with_priority(self.name, priority))

    def _restricted(self, restrictions: Restrictions) -> "Query":
        self.builder.restrict(self.name, restrictions)
        return Query(self.builder, self.name, restrictions)


class KeyedStream:
    """A stream with a key; the next step keeps state for each key."""

    def __init__(self, builder: Builder, step: str, key: tuple[str, ...]) -> None:
        self.builder = builder
        self.step = step
        self.key = key

    def _keyed(self, name: str, operation: Operation) -> Stream:
        self.builder.add(Keyed(name, (self.step,), self.key, operation))
        return Stream(self.builder, name, has_final=operation.has_final)

    def aggregate(self, name: str, **aggregates: Aggregate) -> Stream:
        """One row a key with running aggregates; each epoch gives the keys that changed.

        >>> counts = clicks.key_by("user").aggregate("count", n=agg.count(), paid=agg.sum("price"))
        >>> query = counts.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "count", {"user": str, "price": int})
        >>> harness.epoch([{"user": "ann", "price": 3}, {"user": "bob", "price": 1}, {"user": "ann", "price": 4}])
        [{'user': 'ann', 'n': 2, 'paid': 7}, {'user': 'bob', 'n': 1, 'paid': 1}]
        >>> harness.epoch([{"user": "bob", "price": 2}])
        [{'user': 'bob', 'n': 2, 'paid': 3}]
        """
        return self._keyed(name, Aggregation(_checked(name, aggregates)))

    def reduce(self, name: str, function: KeyReducer, *, state: Fields, output: Fields) -> Stream:
        """A reducer called for each key that has rows: `(key, rows, state) → (state, output rows)`.

        Rows, key and state are dictionaries; the state is None for a new key, and a key whose
        function returns None as its state is forgotten.

        >>> def dearest(key, rows, state):
        ...     most = max([row["price"] for row in rows] + ([state["most"]] if state else []))
        ...     return {"most": most}, [{"user": key["user"], "most": most}]
        >>> output = {"user": str, "most": int}
        >>> top = clicks.key_by("user").reduce("dearest", dearest, state={"most": int}, output=output)
        >>> query = top.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "dearest", {"user": str, "price": int})
        >>> harness.epoch([{"user": "ann", "price": 3}, {"user": "ann", "price": 9}])
        [{'user': 'ann', 'most': 9}]
        >>> harness.epoch([{"user": "ann", "price": 5}])
        [{'user': 'ann', 'most': 9}]
        """
        state, output = schema_of(state), schema_of(output)
        return self._keyed(name, Reduction(PerKey(function, state, output), state, output))

    def reduce_batches(self, name: str, function: BatchReducer, *, state: Fields, output: Fields) -> Stream:
        """A reducer over all keys of an instance at once: `Groups → Reduced`, in Arrow tables."""
        return self._keyed(name, Reduction(function, schema_of(state), schema_of(output)))

    def dedupe(
        self,
        name: str,
        *,
        column: str | None = None,
        within: Duration | None = None,
        ahead: Duration | None = AHEAD,
    ) -> Stream:
        """The first row of each key; with `column` and `within`, keys are remembered for that event time.

        Rows that are further `ahead` of the clock do not count, as with `window`.

        >>> query = clicks.key_by("user").dedupe("firsts").sink("out", sinks.memory())
        >>> harness = StepHarness(app, "firsts", {"user": str, "price": int})
        >>> harness.epoch([{"user": "ann", "price": 3}])
        [{'user': 'ann', 'price': 3}]
        >>> harness.epoch([{"user": "ann", "price": 8}, {"user": "bob", "price": 1}])
        [{'user': 'bob', 'price': 1}]
        """
        if (column is None) != (within is None):
            raise BadGraph(name, "both column= and within=, or neither", f"column={column!r}, within={within!r}")
        span = None if column is None or within is None else Remembered(column, microseconds(within), _ahead_us(ahead))
        return self._keyed(name, Deduplication(span))

    def session(
        self, column: str, gap: Duration, *, late: Duration = "0 seconds", ahead: Duration | None = AHEAD
    ) -> "SessionStream":
        """Sessions: rows of a key that follow each other with less than the `gap` between them, by event time.

        A session is over when the watermark, which is the newest event time less `late`, has reached its last row and
        the gap. Rows before the watermark are late; so sessions are the same however the other rows come. Rows that are
        further `ahead` of the clock do not count, as with `window`.

        >>> visits = clicks.key_by("user").session("at", gap="30 minutes").aggregate("visits", n=agg.count())
        >>> query = visits.sink("out", sinks.memory(), mode="final")
        >>> harness = StepHarness(app, "visits", {"user": str, "at": datetime})
        >>> rows = [{"user": "ann", "at": datetime(2026, 1, 1, 12, minute)} for minute in (0, 20, 55)]
        >>> sorted((row["n"], row["final"]) for row in harness.epoch(rows))
        [(1, False), (2, False)]
        >>> [(row["session_end"].minute, row["n"], row["final"]) for row in harness.epoch([])]
        [(50, 2, True)]
        """
        return SessionStream(self, Gap(column, microseconds(gap), microseconds(late), _ahead_us(ahead)))

    def join(
        self,
        name: str,
        other: "KeyedStream",
        *,
        how: str = "inner",
        time: tuple[str, str] | None = None,
        within: tuple[Duration, Duration] | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        where: "Where | pc.Expression | None" = None,
        suffix: str = SUFFIX,
    ) -> Stream:
        """Rows of this stream, the left one, with rows of another one that have the same key.

        With `time`, the columns with the event time of the left and of the right stream, and `within`, how much later
        the right row may be (less than zero if it may be earlier), rows wait no longer than a match can come. Without
        them every row waits for ever, and `how` can only be `"inner"`. With `"left"`, `"right"` or `"full"`, rows of
        that side, or of both, that find no match come once, with nulls, when the watermark says that none can come: it
        trails the newest event time of the side that has come least far by `late`. Later rows are dropped and counted.

        `where` is a further condition: an Arrow expression over the joined columns, or a function from a table of them
        to a column of booleans. Null keys match nothing. Of two columns with one name, the right one gets the `suffix`.

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
        kind, times, span = checked_how(name, how), time_columns(name, time), interval(name, within)
        if (span is None) != (not times):
            raise BadGraph(name, "both time= and within=, or neither", f"time={time!r}, within={within!r}")
        if span is None and kind != "inner":
            raise BadGraph(name, f"time= and within= for how={how!r}: else a match might come at any time", "neither")
        if where is not None and not callable(where) and not isinstance(where, pc.Expression):
            raise BadGraph(name, "where= an Arrow expression such as pc.field('paid') >= pc.field('due')", repr(where))
        fits = Condition(where) if isinstance(where, pc.Expression) else where
        timed = TimedSides(times, None if span is None else microseconds(late), _ahead_us(ahead))
        return self._sided(name, (other,), Joining(kind, timed, span, fits, suffix))

    def as_of(
        self,
        name: str,
        other: "KeyedStream",
        *,
        time: tuple[str, str],
        tolerance: Duration | None = None,
        how: str = "left",
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        suffix: str = SUFFIX,
    ) -> Stream:
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
        timed = TimedSides(times, microseconds(late), _ahead_us(ahead))
        oldest_us = None if tolerance is None else microseconds(tolerance)
        return self._sided(name, (other,), AsOf(timed, how == "left", oldest_us, suffix))

    def co_reduce(
        self, name: str, *others_and_function: "KeyedStream | CoReducer", state: Fields, output: Fields
    ) -> Stream:
        """A reducer over this stream and others with keys of the same types, called for each key that has rows.

        The function comes last: `(key, rows of this stream, rows of each other one, state) → (state, output rows)`.
        Otherwise it is as with `reduce`. The columns of the key have the names that they have in this stream.

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
        *others, function = others_and_function
        if not others or not callable(function):
            got = "no other stream" if callable(function) else repr(function)
            raise BadGraph(name, "other keyed streams and then a function of all their rows", got)
        state, output = schema_of(state), schema_of(output)
        reducer = PerKey(BySide(function, 1 + len(others)), state, output)
        return self._sided(name, tuple(others), Reduction(reducer, state, output, kind="co-reduce"))

    def _sided(self, name: str, others: tuple[Any, ...], operation: Operation) -> Stream:
        """A step with several inputs: their rows come on one way."""
        for other in others:
            if not isinstance(other, KeyedStream):
                raise BadGraph(name, "a keyed stream, such as payments.key_by('order')", repr(other))
            if other.builder is not self.builder:
                raise BadGraph(name, "streams of one app", "a stream of another app")
            if len(other.key) != len(self.key):
                raise BadGraph(name, f"keys of {len(self.key)} columns, as {self.key}", repr(other.key))
        sides = (self, *others)
        way = Sides(f"{name}-sides", tuple(s.step for s in sides), tuple(s.key for s in sides), name)
        self.builder.add(way)
        self.builder.add(Keyed(name, (way.name,), self.key, operation))
        return Stream(self.builder, name, has_final=operation.has_final)

    def window(
        self,
        column: str,
        size: Duration,
        slide: Duration | None = None,
        *,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
    ) -> "WindowedStream":
        """Event-time windows; one closes when the newest event time is `late` past its end.

        Rows whose event time is further `ahead` of the clock are kept out and counted: else a single one of the year
        9999 would make every later row late. None takes them all, for data of a time to come.

        >>> minutes = clicks.key_by("user").window("at", "1 minute", late="10 seconds")
        >>> query = minutes.aggregate("by_minute", n=agg.count()).sink("out", sinks.memory())
        >>> harness = StepHarness(app, "by_minute", {"user": str, "at": datetime})
        >>> [(row["n"], row["final"]) for row in harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12, 0, 5)}])]
        [(1, False)]
        >>> later = harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12, 1, 30)}])
        >>> [(row["window_start"].minute, row["n"], row["final"]) for row in harness.epoch([])]
        [(0, 1, True)]
        """
        size_us = microseconds(size)
        slide_us = size_us if slide is None else microseconds(slide)
        return WindowedStream(self, Window(column, size_us, slide_us, microseconds(late), _ahead_us(ahead)))


class SessionStream:
    """A keyed stream cut into sessions."""

    def __init__(self, keyed: KeyedStream, gap: Gap) -> None:
        self.keyed = keyed
        self.gap = gap

    def aggregate(self, name: str, **aggregates: Aggregate) -> Stream:
        """Aggregates by key and session: updates while a session is open, one final row when it is over.

        The rows have the columns `session_start`, the time of its first row, `session_end`, the time of its last row
        and a gap, and `final` beside key and aggregates. Open sessions may become one, so an update may stand for a
        part of a session; a final row stands for all of it, and comes once.
        """
        return self.keyed._keyed(name, Sessions(_checked(name, aggregates), self.gap))


class WindowedStream:
    """A keyed stream cut into event-time windows."""

    def __init__(self, keyed: KeyedStream, window: Window) -> None:
        self.keyed = keyed
        self.window = window

    def aggregate(self, name: str, **aggregates: Aggregate) -> Stream:
        """Aggregates by key and window: updates while a window is open, one final row when it closes.

        The rows have the columns `window_start`, `window_end` and `final` beside key and aggregates.
        """
        return self.keyed._keyed(name, Aggregation(_checked(name, aggregates), self.window))


def _ahead_us(ahead: Duration | None) -> int | None:
    return None if ahead is None else microseconds(ahead)


def _checked(name: str, aggregates: dict[str, Aggregate]) -> dict[str, Aggregate]:
    if not aggregates:
        raise BadGraph(name, "at least one aggregate, such as n=agg.count()", "none")
    for result, aggregate in aggregates.items():
        valid_name("the result", result)
        if not callable(getattr(aggregate, "combine", None)):
            raise BadGraph(name, f"{result}= an aggregate such as agg.count()", repr(aggregate))
    columns = [column for result, aggregate in aggregates.items() for column in result_names(result, aggregate)]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise BadGraph(name, "results with names of their own, those that an estimate adds among them", repr(twice))
    return aggregates
