"""Keys that are forgotten, against plain Python: by either clock, in any epochs, while slices change hands."""

import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import forgetting_oracle as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Row, multiset

from springtide import App, Ttl, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.dataflow.stream import Stream
from springtide.state.timers import Timer
from springtide.testing import ManualClock, StepHarness

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
SPAN_US = 20
SPAN = timedelta(microseconds=SPAN_US)
COLUMNS = {"k": str, "at": datetime, "v": int}
TOTALS = {"n": int, "total": int}
SIZES = {"left": int, "right": int}


def reducing(key: Row, rows: list[Row], state: Row | None) -> Any:
    return oracle.unless_zero(key["k"], [rows], state)


def both(key: Row, left: list[Row], right: list[Row], state: Row | None) -> Any:
    return oracle.sizes(key["k"], [left, right], state)


@dataclass(frozen=True)
class Step:
    """A step that may forget, and the oracle of one key."""

    fold: oracle.Fold
    inputs: int = 1

    def add(self, left: KeyedStream, right: KeyedStream, ttl: Any) -> Stream:
        return {
            oracle.totals: lambda: left.aggregate("step", n=agg.count(), total=agg.sum("v"), ttl=ttl),
            oracle.unless_zero: lambda: left.reduce(
                "step", reducing, state=TOTALS, output={"k": str, **TOTALS}, ttl=ttl
            ),
            oracle.first: lambda: left.dedupe("step", ttl=ttl),
            oracle.sizes: lambda: left.co_reduce("step", right, both, state=SIZES, output={"k": str, **SIZES}, ttl=ttl),
            oracle.pairs: lambda: left.join("step", right, ttl=ttl),
        }[self.fold]()


STEPS = {
    "aggregate": Step(oracle.totals),
    "reduce": Step(oracle.unless_zero),
    "dedupe": Step(oracle.first),
    "co_reduce": Step(oracle.sizes, 2),
    "join": Step(oracle.pairs, 2),
}


def harness(step: Step, ttl: Any, hash_of: Any, clock: ManualClock) -> StepHarness:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)).key_by("k") for name in ("left", "right"))
    step.add(left, right, ttl).sink("out", sinks.memory())
    if step.inputs == 1:
        right.aggregate("unused", n=agg.count()).sink("nowhere", sinks.noop())
    return StepHarness(app, "step", COLUMNS if step.inputs == 1 else [COLUMNS] * 2, hash=hash_of, clock=clock)


times = st.one_of(st.integers(0, 60), st.none())
rows = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), times, st.integers(-1, 1)), max_size=4)
epochs = st.lists(st.tuples(rows, rows, st.integers(0, 15), st.integers(1, 4), st.booleans()), min_size=1, max_size=10)


def row(key: str | None, us: int | None, v: int) -> Row:
    return {"k": key, "us": us, "at": None if us is None else BEGINNING + timedelta(microseconds=us), "v": v}


def without_us(some: list[Row]) -> list[Row]:
    return [{name: value for name, value in each.items() if name != "us"} for each in some]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("late_us", [None, 0, 9], ids=["wall", "event", "event-late"])
@settings(max_examples=30, deadline=None)
@given(drawn=epochs, hash_of=st.sampled_from(list(HASHES.values())))
def test_a_key_is_forgotten_a_span_after_its_last_row(name: str, late_us: int | None, drawn: Any, hash_of: Any) -> None:
    step, clock = STEPS[name], ManualClock(1000.0)
    time: Any = "at" if step.inputs == 1 else ("at", "at")
    ttl: Any = SPAN if late_us is None else Ttl(SPAN, time, late=timedelta(microseconds=late_us), ahead=None)
    fed = harness(step, ttl, hash_of, clock)
    expected = oracle.Remembering(step.fold, SPAN_US, step.inputs, late_us, hash_of)
    for left, right, passed, instances, crash in drawn:
        clock.advance(passed / 1e6)
        sides = [[row(*each) for each in side] for side in (left, right)][: step.inputs]
        fed.instances = instances
        before = copy.copy(fed)
        found = fed.epoch(*map(without_us, sides))
        if crash:  # The epoch is not committed: another driver runs it again, from the same state.
            fed = before
            assert fed.epoch(*map(without_us, sides)) == found
        told = expected.epoch(sides, round(clock() * 1e6))
        assert multiset(found) == multiset(without_us(told))
        assert fed.keys == len(expected.known)
        assert {each["k"] for each in fed.state()} == expected.known.keys()


def test_a_timer_that_is_due_before_its_key_is_forgotten_rings_and_one_after_does_not() -> None:
    def set_for(key: Row, some: list[Row], state: Row | None, timer: Timer) -> Any:
        timer.set(some[-1]["at"] + timedelta(microseconds=some[-1]["v"]))
        return {"n": 0, "total": 0}, []

    def ring(key: Row, state: Row, timer: Timer) -> Any:
        return state, [{"k": key["k"], **state}]

    app = App("app")
    keyed = app.source("rows", sources.generator(1)).key_by("k")
    options: Any = {"state": TOTALS, "output": {"k": str, **TOTALS}, "on_timer": ring, "time": "at", "ttl": SPAN}
    keyed.reduce("step", set_for, **options).sink("out", sinks.memory())
    fed = StepHarness(app, "step", COLUMNS)
    due = [("before", SPAN_US - 1), ("with", SPAN_US), ("after", SPAN_US + 1)]
    assert fed.epoch(without_us([row(key, 100, wait) for key, wait in due])) == []
    assert fed.epoch(without_us([row("later", 100 + 2 * SPAN_US, 1)])) == []
    assert [found["k"] for found in fed.epoch([])] == ["before"]
    assert [found["k"] for found in fed.state()] == ["later"]


@pytest.mark.parametrize(
    ("ttl", "expected"),
    [
        (timedelta(0), r"a ttl= above zero"),
        (Ttl(SPAN, ("at", "at")), "time= a column name"),
    ],
)
def test_what_makes_no_sense_is_refused(ttl: Any, expected: str) -> None:
    with pytest.raises(BadGraph, match=expected):
        harness(STEPS["aggregate"], ttl, HASHES["good"], ManualClock())
