"""Timers of reducers against an oracle: set, cancelled, rung once, by event time and by the wall clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Farm, Hash, Row, good_hash, multiset

from springtide import App, Groups, Reduced, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.state.errors import BadUpdate
from springtide.state.per_key import PerKey, PerTimer
from springtide.state.reduce import ReduceLogic
from springtide.state.row_times import RowTimes
from springtide.state.timers import Timer, Timing
from springtide.testing import ManualClock, StepHarness

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
KEY = pa.schema([("k", pa.string())])
ROWS = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", "UTC")), ("set", pa.int64())])
STATE = pa.schema([("rows", pa.int64()), ("again", pa.int64())])
OUTPUT = pa.schema([("k", pa.string()), ("what", pa.string()), ("rows", pa.int64())])
CANCEL, FORGET = -1, -2
AGAIN = 7
"""How long after it has rung a timer that was set by an odd number rings a second time."""


def at(us: int) -> datetime:
    return BEGINNING + timedelta(microseconds=us)


def us(time: datetime) -> int:
    return (time - BEGINNING) // timedelta(microseconds=1)


def told(key: Row, rows: list[Row], state: Row | None, timer: Timer) -> tuple[Row | None, list[Row]]:
    """Each row sets the timer, cancels it, or has its key forgotten."""
    count = 0 if state is None else state["rows"]
    again = 0 if state is None else state["again"]
    known: Row | None = state
    for row in rows:
        count += 1
        if row["set"] == CANCEL:
            timer.cancel()
        elif row["set"] is not None and row["set"] >= 0:
            timer.set(at(row["set"]))
            again = row["set"] % 2
        known = None if row["set"] == FORGET else {"rows": count, "again": again}
        if known is None:
            count = again = 0
    return known, [{"k": key["k"], "what": "row", "rows": count}]


def rung(key: Row, state: Row, timer: Timer) -> tuple[Row | None, list[Row]]:
    assert timer.at is None
    assert timer.now is not None
    if state["again"]:
        timer.set(timer.now + timedelta(microseconds=AGAIN))
    return {**state, "again": 0}, [{"k": key["k"], "what": "ring", "rows": state["rows"]}]


class Oracle:
    """One key after the other, one epoch after the other, in plain Python."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, Any]] = {}

    def epoch(self, rows: list[Row], clock: int | None) -> list[Row]:
        out = []
        for key, known in self.keys.items():
            if clock is not None and known["at"] is not None and known["at"] <= clock:
                out.append({"k": key, "what": "ring", "rows": known["rows"]})
                known["at"], known["again"] = (clock + AGAIN if known["again"] else None), 0
        for key in {row["k"] for row in rows}:
            known = self.keys.get(key, {"rows": 0, "again": 0, "at": None})
            for row in (row for row in rows if row["k"] == key):
                known["rows"] += 1
                if row["set"] == CANCEL:
                    known["at"] = None
                elif row["set"] is not None and row["set"] >= 0:
                    known["at"], known["again"] = row["set"], row["set"] % 2
                if row["set"] == FORGET:
                    known |= {"rows": 0, "again": 0}
            # What is set for a time that has passed rings with the next epoch in which time goes on.
            if known["at"] is not None and clock is not None:
                known["at"] = max(known["at"], clock + 1)
            out.append({"k": key, "what": "row", "rows": known["rows"]})
            self.keys[key] = known
            forgotten = [row["set"] for row in rows if row["k"] == key][-1] == FORGET
            if forgotten:
                del self.keys[key]
        return out


def logic(times: RowTimes | None, late_us: int = 0) -> ReduceLogic:
    timing = Timing(PerTimer(rung, STATE, OUTPUT), times, late_us)
    return ReduceLogic(KEY, ROWS, PerKey(told, STATE, OUTPUT, timed=True), STATE, OUTPUT, timing)


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.sampled_from([None, CANCEL, FORGET, *range(0, 90, 7)])),
    max_size=4,
)
epochs = st.lists(rows, max_size=10)


@settings(max_examples=120, deadline=None)
@given(drawn=epochs, hash_of=st.sampled_from(list(HASHES.values())), late_us=st.sampled_from([0, 10]))
def test_by_event_time_a_timer_rings_once_when_the_watermark_has_reached_it(
    drawn: Any, hash_of: Hash, late_us: int
) -> None:
    farm, oracle = Farm(logic(RowTimes(("t",)), late_us), ROWS, hash_of, 4, [0, 1, 0, 1]), Oracle()
    newest: int | None = None
    for number, some in enumerate(drawn):
        epoch = [{"k": key, "t": at(time), "set": what} for key, time, what in some]
        clock = None if newest is None else newest - late_us
        assert multiset(farm.epoch(epoch).output) == multiset(oracle.epoch(epoch, clock))
        newest = max([*(us(row["t"]) for row in epoch), *([] if newest is None else [newest])], default=None)
        farm.owner = [farm.owner[1], farm.owner[0], *farm.owner[2:]] if number % 3 == 2 else farm.owner
    assert farm.keys == len(oracle.keys)


@settings(max_examples=80, deadline=None)
@given(drawn=st.lists(st.tuples(rows, st.integers(0, 30)), max_size=10), hash_of=st.sampled_from([*HASHES.values()]))
def test_by_the_wall_clock_it_rings_whether_rows_come_or_not(drawn: Any, hash_of: Hash) -> None:
    farm, oracle, now = Farm(logic(None), ROWS, hash_of, 4, [0, 1, 0, 1]), Oracle(), 0
    for some, passed in drawn:
        now += passed
        farm.now_us = now
        epoch = [{"k": key, "t": at(time), "set": what} for key, time, what in some]
        assert multiset(farm.epoch(epoch).output) == multiset(oracle.epoch(epoch, now))


@settings(max_examples=40, deadline=None)
@given(drawn=epochs)
def test_when_the_next_timer_is_due_is_known(drawn: Any) -> None:
    """Of all keys, though older runs hold other times for some of them."""
    farm, oracle = Farm(logic(RowTimes(("t",))), ROWS, good_hash, 4, [0, 0, 0, 0]), Oracle()
    newest: int | None = None
    for some in drawn:
        epoch = [{"k": key, "t": at(time), "set": what} for key, time, what in some]
        farm.epoch(epoch)
        oracle.epoch(epoch, newest)
        newest = max([*(us(row["t"]) for row in epoch), *([] if newest is None else [newest])], default=None)
        set_for = [known["at"] for known in oracle.keys.values() if known["at"] is not None]
        expected = min(set_for, default=1 << 62)
        before = farm.moment.watermark_us
        assert farm.chain_of(0).next_expiry_us(before) == max(expected, before + 1)


def test_rows_without_a_time_or_of_the_far_future_do_not_count() -> None:
    farm = Farm(logic(RowTimes(("t",), ahead_us=10)), ROWS)
    result = farm.epoch([{"k": "a", "t": None, "set": 5}, {"k": "a", "t": at(3), "set": 5}])
    assert (result.malformed_rows, [row["rows"] for row in result.output]) == (1, [1])


def app_of(**more: Any) -> App:
    app = App("timers")
    keyed = app.source("rows", sources.generator(1)).key_by("k")
    step = keyed.reduce("step", told, state={"rows": int, "again": int}, output=dict.fromkeys("k", str), **more)
    step.sink("out", sinks.memory())
    return app


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"time": "t"}, "on_timer= a function that is called when a timer rings, with time="),
        ({"on_timer": 7}, "on_timer= a function that is called when a timer rings, got 7"),
        ({"on_timer": rung, "time": ("t", "t")}, "time= a column name"),
        ({"on_timer": rung, "time": 7}, "time= a column name"),
    ],
)
def test_timers_that_make_no_sense_are_refused(more: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadGraph, match=expected.replace("(", r"\(")):
        app_of(**more)


@pytest.mark.parametrize(
    ("more", "expected"), [({"state": {}}, "state= one or more columns"), ({"function": 7}, "got 7")]
)
@pytest.mark.parametrize("form", ["reduce", "reduce_batches", "co_reduce", "co_reduce_batches"])
def test_a_reducer_is_a_function_with_a_state(form: str, more: dict[str, Any], expected: str) -> None:
    keyed = App("app").source("rows", sources.generator(1)).key_by("k")
    given = {"function": told, "state": {"rows": int}, **more}
    others = [keyed] if form.startswith("co") else []
    with pytest.raises(BadGraph, match=expected) as refused:
        getattr(keyed, form)("step", *others, given["function"], state=given["state"], output={"k": str})
    assert refused.value.step == "step"


def test_a_right_time_may_be_named_like_the_left_key() -> None:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    fields: dict[str, Any] = {"state": {"n": int}, "output": {"n": int}}
    times: dict[str, Any] = {"on_timer": lambda key, state, timer: (None, []), "time": ("when", "at"), "ttl": "1 hour"}

    def both(key: Row, mine: list[Row], theirs: list[Row], state: Row | None, timer: Timer) -> Any:
        return {"n": 1}, [{"n": len(mine) + len(theirs)}]

    left.key_by("at").co_reduce("step", right.key_by("id"), both, **fields, **times).sink("out", sinks.memory())
    step = StepHarness(app, "step", [{"at": str, "when": datetime}, {"id": str, "at": datetime}])
    assert step.epoch([{"at": "gate", "when": at(0)}], [{"id": "gate", "at": at(0)}]) == [{"n": 2}]


@pytest.mark.parametrize(("unit", "time"), [("ns", 1), ("s", 1 << 60)])
def test_timers_of_all_keys_fit_microseconds(unit: str, time: int) -> None:
    def timed(groups: Groups) -> Reduced:
        timers = pa.array([time] * len(groups), pa.timestamp(unit, "UTC"))
        return Reduced(pa.table({"n": [1] * len(groups)}), pa.table({"n": [1]}), timers=timers)

    app = App("app")
    keyed = app.source("rows", sources.generator(1)).key_by("k")
    step = keyed.reduce_batches("step", timed, state={"n": int}, output={"n": int}, on_timer=timed)
    step.sink("out", sinks.memory())
    with pytest.raises(BadUpdate, match=r"timers: expected times that fit timestamp\[us, tz=UTC\]"):
        StepHarness(app, "step", {"k": str}).epoch([{"k": "a"}])


def test_a_timer_takes_a_time() -> None:
    with pytest.raises(BadUpdate, match="timer: expected a datetime"):
        Timer(None).set(5)  # type: ignore[arg-type]


def vectorised() -> App:
    """Two streams, all keys at once: a key that has had rows of one alone is told of half a minute later."""

    def both(groups: Groups) -> Reduced:
        left, right = (groups.side(n).sizes for n in (0, 1))
        had = [groups.state[name].fill_null(0).to_numpy() for name in ("left", "right")]
        state = pa.table({"left": had[0] + left, "right": had[1] + right})
        complete = (state["left"].to_numpy() > 0) & (state["right"].to_numpy() > 0)
        wanted = pa.array([groups.now_us + 30_000_000] * len(groups), pa.timestamp("us", "UTC"))
        timers = pa.compute.if_else(pa.array(complete), pa.nulls(len(groups), wanted.type), wanted)
        return Reduced(state, pa.table({"k": pa.array([], pa.string())}), timers=timers)

    def alone(groups: Groups) -> Reduced:
        assert groups.rows.num_rows == 0
        return Reduced(groups.state, groups.keys)

    app = App("both")
    left, right = (app.source(name, sources.generator(1)).key_by("k") for name in ("left", "right"))
    counts = {"left": int, "right": int}
    step = left.co_reduce_batches("both", right, both, state=counts, output={"k": str}, on_timer=alone)
    step.sink("out", sinks.memory())
    return app


def test_the_vectorised_form_sets_timers_for_all_keys_of_two_streams_at_once() -> None:
    clock = ManualClock(1000.0)
    harness = StepHarness(vectorised(), "both", [{"k": str}, {"k": str}], clock=clock)
    assert harness.epoch([{"k": "a"}, {"k": "b"}], [{"k": "b"}, {"k": "c"}]) == []
    clock.advance(29.0)
    assert harness.epoch([{"k": "c"}], []) == []
    clock.advance(1.0)
    assert harness.epoch([], []) == [{"k": "a"}]
    assert {row["k"]: (row["left"], row["right"]) for row in harness.state()} == {"a": (1, 0), "b": (1, 1), "c": (1, 1)}
