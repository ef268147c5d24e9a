"""Keyed streams: what the next step keeps for each key.

In the examples `clicks` is a stream of an `app`, and a `StepHarness` of `springtide.testing` shows what a step does.
"""

from typing import TYPE_CHECKING

from springtide.dataflow.duration import Duration, ahead_us, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.fields import Fields, schema_of
from springtide.dataflow.graph import Keyed
from springtide.dataflow.meeting import MeetingStream
from springtide.dataflow.operations import Aggregation, Deduplication, Operation
from springtide.dataflow.reducing import Reduction, per_timer, reducer_of, state_of, timers_of
from springtide.dataflow.ttl import Ttl, remembered
from springtide.dataflow.windowed import CountWindowStream, SessionStream, WindowedStream, checked_aggregates
from springtide.state.aggregates import Aggregate
from springtide.state.ahead import DEFAULT as AHEAD
from springtide.state.clock import ProcessingTime
from springtide.state.dedupe import Within as Remembered
from springtide.state.per_key import KeyReducer, KeyTimer, PerKey
from springtide.state.reduce import BatchReducer
from springtide.state.session import Gap
from springtide.state.window import Window

if TYPE_CHECKING:
    from springtide.dataflow.stream import Stream


class KeyedStream(MeetingStream):
    """A stream with a key; the next step keeps state for each key."""

    def __init__(self, stream: "Stream", key: tuple[str, ...]) -> None:
        super().__init__(stream.builder, stream.step, key)
        self._stream = stream

    def _keyed(self, name: str, operation: Operation) -> "Stream":
        return self._then(Keyed(name, (self.step,), self.key, operation), (self.step,))

    def _then(self, node: Keyed, inputs: tuple[str, ...]) -> "Stream":
        return self._stream._with_state(node, inputs)

    def aggregate(self, name: str, *, ttl: Duration | Ttl | None = None, **aggregates: Aggregate) -> "Stream":
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
        return self._keyed(name, remembered(name, Aggregation(checked_aggregates(name, aggregates)), ttl))

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
    ) -> "Stream":
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
    ) -> "Stream":
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
    ) -> "Stream":
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
    ) -> SessionStream:
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
        return SessionStream(self._keyed, Gap(column, microseconds(gap), microseconds(late), ahead_us(ahead)))

    def window(
        self,
        column: str | ProcessingTime,
        size: Duration,
        slide: Duration | None = None,
        *,
        late: Duration = "0 seconds",
        ahead: Duration | None = AHEAD,
        early: Duration | None = None,
    ) -> WindowedStream:
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
            return WindowedStream(self._keyed, Window(None, size_us, slide_us, 0, early_us=early_us))
        window = Window(column, size_us, slide_us, microseconds(late), ahead_us(ahead), early_us)
        return WindowedStream(self._keyed, window)

    def count_window(self, size: int) -> CountWindowStream:
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
        return CountWindowStream(self._keyed, size)
