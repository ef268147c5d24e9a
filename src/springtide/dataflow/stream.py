"""Streams: how a person writes the graph.

In the examples `clicks` is a stream of an `app`, and a `StepHarness` of `springtide.testing` shows what a step does.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from springtide.dataflow.duration import Duration, ahead_us, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import FINAL_ONLY, UPDATES, Keyed, Late, MapBatches, Node, Sink, Transform, Union
from springtide.dataflow.meeting import Builder, MeetingStream
from springtide.dataflow.operations import Aggregation, CountWindows, Deduplication, Operation, Sessions
from springtide.dataflow.reducing import Reduction, per_timer, reducer_of, state_of, timers_of
from springtide.dataflow.restrictions import NONE, Restrictions
from springtide.dataflow.sink_spec import Publisher, SinkSpec, as_sink
from springtide.dataflow.ttl import Ttl, remembered
from springtide.ids import valid_name
from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.estimate import result_names
from springtide.state.ahead import DEFAULT as AHEAD
from springtide.state.clock import ProcessingTime
from springtide.state.dedupe import Within as Remembered
from springtide.state.per_key import KeyReducer, KeyTimer, PerKey
from springtide.state.reduce import BatchReducer
from springtide.state.session import Gap
from springtide.state.window import FINAL, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Stream:
    """Rows that flow from one step to the next. Each method adds a named step, or a sink."""

    def __init__(self, builder: Builder, step: str, *, has_final: bool = False, late: Sequence[Late] = ()) -> None:
        self.builder = builder
        self.step = step
        self._has_final = has_final
        self._late = dict(enumerate(late))
        self._late_streams: dict[int, Stream] = {}

    def _then(self, node: Node) -> "Stream":
        self.builder.add(node)
        return Stream(self.builder, node.name)

    @property
    def late(self) -> "Stream":
        """The rows that came too late for this step, as they came: a stream like any other. Of a join, the left rows.

        They are counted as late in any case. A row is late for windows once all that it is in are closed, and for
        sessions, joins and as-of joins once the watermark has passed it.

        >>> counts = clicks.key_by("user").window("at", "1 minute").aggregate("counts", n=agg.count())
        >>> counts.late.sink("too-late", sinks.memory()).name
        'too-late'
        >>> query = counts.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "counts", {"user": str, "at": datetime})
        >>> first = harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12, 5)}])
        >>> harness.epoch([{"user": "bob", "at": datetime(2026, 1, 1, 12, 1)}])
        []
        >>> [(row["user"], row["at"].minute) for row in harness.late]
        [('bob', 1)]
        """
        return self.late_of(0)

    def late_of(self, side: int) -> "Stream":
        """The rows that came too late from one input of this step, by number: 1 is the right stream of a join.

        >>> payments = clicks.transform("payments", lambda df: df).key_by("user")
        >>> paid = clicks.key_by("user").join("paid", payments, time=("at", "at"), window="1 hour")
        >>> query = paid.sink("out", sinks.memory())
        >>> paid.late_of(1).sink("late-payments", sinks.memory()).name
        'late-payments'
        """
        if side not in self._late:
            got = f"input {side} of {len(self._late)} with event times" if self._late else "no event time"
            raise BadGraph(self.step, "rows that may be late, of a window, session or join by event time", got)
        if side not in self._late_streams:
            self._late_streams[side] = self._then(self._late[side])
        return self._late_streams[side]

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


class KeyedStream(MeetingStream):
    """A stream with a key; the next step keeps state for each key."""

    def _keyed(self, name: str, operation: Operation) -> Stream:
        return self._then(Keyed(name, (self.step,), self.key, operation), (self.step,))

    def _then(self, node: Keyed, inputs: tuple[str, ...]) -> Stream:
        self.builder.add(node)
        late = [
            Late(f"{node.name}-late" if side == 0 else f"{node.name}-late-{side}", (step,), node.name, lateness)
            for side, (step, lateness) in enumerate(zip(inputs, node.operation.lateness, strict=False))
        ]
        return Stream(self.builder, node.name, has_final=node.operation.has_final, late=late)

    def aggregate(self, name: str, *, ttl: Duration | Ttl | None = None, **aggregates: Aggregate) -> Stream:
        """One row a key with running aggregates; each epoch gives the keys that changed.

        With `ttl`, a key is forgotten that long after its last row: by the wall clock, or by event time if it is a
        `Ttl`. If another row of it comes then, it starts anew.

        >>> counts = clicks.key_by("user").aggregate("count", n=agg.count(), paid=agg.sum("price"))
        >>> query = counts.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "count", {"user": str, "price": int})
        >>> harness.epoch([{"user": "ann", "price": 3}, {"user": "bob", "price": 1}, {"user": "ann", "price": 4}])
        [{'user': 'ann', 'n': 2, 'paid': 7}, {'user': 'bob', 'n': 1, 'paid': 1}]
        >>> harness.epoch([{"user": "bob", "price": 2}])
        [{'user': 'bob', 'n': 2, 'paid': 3}]
        """
        return self._keyed(name, remembered(name, Aggregation(_checked(name, aggregates)), ttl))

    def reduce(
        self,
        name: str,
        function: KeyReducer,
        *,
        state: Fields,
        output: Fields,
        on_timer: KeyTimer | None = None,
        time: str | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        ttl: Duration | Ttl | None = None,
    ) -> Stream:
        """A reducer called for each key that has rows: `(key, rows, state) → (state, output rows)`.

        Rows, key and state are dictionaries; the state is None for a new key, and a key whose
        function returns None as its state is forgotten.

        With `on_timer`, each key has a timer: the function gets it as its last argument, to `set` it to a time or
        `cancel` it, and once that time has come, `on_timer` is called: `(key, state, timer) → (state, output rows)`. It
        goes by the wall clock, or by event time if `time` names the column with it: then a timer rings when the newest
        event time less `late` has reached it, whether its key has rows or not. With `ttl`, a key is forgotten that long
        after its last row, by the same clock.

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

        Who has been away for half an hour:

        >>> def seen(key, rows, state, timer):
        ...     timer.set(max(row["at"] for row in rows) + timedelta(minutes=30))
        ...     return {"visits": (state["visits"] if state else 0) + 1}, []
        >>> def away(key, state, timer):
        ...     return None, [{"user": key["user"], "visits": state["visits"]}]
        >>> fields = {"state": {"visits": int}, "output": {"user": str, "visits": int}}
        >>> gone = clicks.key_by("user").reduce("gone", seen, on_timer=away, time="at", **fields)
        >>> query = gone.sink("left", sinks.memory())
        >>> harness = StepHarness(app, "gone", {"user": str, "at": datetime})
        >>> harness.epoch([{"user": "ann", "at": datetime(2026, 1, 1, 12)}])
        []
        >>> harness.epoch([{"user": "bob", "at": datetime(2026, 1, 1, 12, 30)}])
        []
        >>> harness.epoch([])
        [{'user': 'ann', 'visits': 1}]
        """
        state, output = state_of(name, state), schema_of(output)
        ring = per_timer(name, on_timer, state, output)
        reducer = PerKey(reducer_of(name, function), state, output, timed=on_timer is not None)
        timers = timers_of(name, ring, time, 1, late, ahead)
        return self._keyed(name, remembered(name, Reduction(reducer, state, output, timers), ttl))

    def reduce_batches(
        self,
        name: str,
        function: BatchReducer,
        *,
        state: Fields,
        output: Fields,
        on_timer: BatchReducer | None = None,
        time: str | None = None,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        ttl: Duration | Ttl | None = None,
    ) -> Stream:
        """A reducer over all keys of an instance at once: `Groups → Reduced`, in Arrow tables.

        With `on_timer`, also a `Groups → Reduced`, but of keys whose timers have rung and without rows,
        `groups.timers` tells when each key's timer is set to ring, and `Reduced(..., timers=...)` sets them.
        """
        timers = timers_of(name, on_timer, time, 1, late, ahead)
        reduction = Reduction(reducer_of(name, function), state_of(name, state), schema_of(output), timers)
        return self._keyed(name, remembered(name, reduction, ttl))

    def dedupe(
        self,
        name: str,
        *,
        column: str | None = None,
        within: Duration | None = None,
        ahead: Duration | None = AHEAD,
        ttl: Duration | Ttl | None = None,
    ) -> Stream:
        """The first row of each key; with `column` and `within`, keys are remembered for that event time.

        With `ttl`, a key is forgotten that long after its last row, whether that one was let through or not.

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
        if within is not None and ttl is not None:
            raise BadGraph(name, "within= or ttl=, not both", f"within={within!r}, ttl={ttl!r}")
        span = None if column is None or within is None else Remembered(column, microseconds(within), ahead_us(ahead))
        return self._keyed(name, remembered(name, Deduplication(span), ttl))

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
        if not isinstance(column, str):
            raise BadGraph(self.step, "a column with event times, as sessions have no other clock", repr(column))
        return SessionStream(self, Gap(column, microseconds(gap), microseconds(late), ahead_us(ahead)))

    def window(
        self,
        column: str | ProcessingTime,
        size: Duration,
        slide: Duration | None = None,
        *,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        early: Duration | None = None,
    ) -> "WindowedStream":
        """Event-time windows; one closes when the newest event time is `late` past its end.

        Open windows give updates in each epoch that has rows of them; with `early`, such as `"5 minutes"`, only when
        the newest event time passes a multiple of it, and only if rows came since.

        With `PROCESSING_TIME` in place of a column, a row is in the windows of the time at which its epoch was planned,
        and a window closes when the wall clock has reached its end, whether rows come or not. An epoch that is repeated
        sees the same time.

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
        if not isinstance(column, str | ProcessingTime):
            raise BadGraph(self.step, "a column with event times, or PROCESSING_TIME", repr(column))
        size_us, early_us = microseconds(size), None if early is None else microseconds(early)
        slide_us = size_us if slide is None else microseconds(slide)
        if isinstance(column, ProcessingTime):
            if microseconds(late):
                raise BadGraph(self.step, "no late= for a window by processing time: no row is late", repr(late))
            return WindowedStream(self, Window(None, size_us, slide_us, 0, early_us=early_us))
        return WindowedStream(self, Window(column, size_us, slide_us, microseconds(late), ahead_us(ahead), early_us))

    def count_window(self, size: int) -> "CountWindowStream":
        """Windows of `size` rows of a key, in the order in which they come.

        >>> pairs = clicks.key_by("user").count_window(2).aggregate("pairs", paid=agg.sum("price"))
        >>> query = pairs.sink("out", sinks.memory())
        >>> harness = StepHarness(app, "pairs", {"user": str, "price": int})
        >>> rows = [{"user": "ann", "price": price} for price in (3, 4, 5)]
        >>> [(row["window_number"], row["paid"], row["final"]) for row in harness.epoch(rows)]
        [(0, 7, True), (1, 5, False)]
        """
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise BadGraph(self.step, "count_window with how many rows a window has, 1 or more", repr(size))
        return CountWindowStream(self, size)


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


class CountWindowStream:
    """A keyed stream cut into windows of a number of rows."""

    def __init__(self, keyed: KeyedStream, size: int) -> None:
        self.keyed = keyed
        self.size = size

    def aggregate(self, name: str, *, ttl: Duration | Ttl | None = None, **aggregates: Aggregate) -> Stream:
        """Aggregates by key and window: updates while a window is open, one final row when it is full.

        The rows have the columns `window_number`, from 0, and `final` beside key and aggregates. With `ttl`, a key is
        forgotten that long after its last row, with what its open window had.
        """
        return self.keyed._keyed(name, remembered(name, CountWindows(_checked(name, aggregates), self.size), ttl))


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
