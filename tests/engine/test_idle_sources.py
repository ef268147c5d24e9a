"""The watermark of a step with several inputs, some of which may be idle, against the history of all epochs."""

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, sinks, sources
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.engine.epoch.compute import EpochComputation
from springtide.engine.epoch.event_time import after_epoch, may_expire, moment_of, watermark_of
from springtide.ids import Epoch
from springtide.state.clock import EventTime
from springtide.state.logic import BEGINNING_US, Moment

LATE = EventTime(10)
INPUTS = 3


@dataclass(frozen=True)
class Seen:
    """An epoch: when it was planned, and the newest event time of each input that had rows."""

    now_us: int
    newest_us: tuple[int | None, ...]


limits = st.tuples(*[st.one_of(st.none(), st.integers(1, 40))] * INPUTS)
epochs = st.lists(
    st.tuples(st.integers(0, 25), st.tuples(*[st.one_of(st.none(), st.integers(0, 300))] * INPUTS)), max_size=12
)


def told(before: list[Seen], now_us: int, limits: tuple[int | None, ...]) -> int | None:
    """What all inputs that are not idle have reached, or all if they are; None if one of these has had no row."""
    awake, all_inputs = list[int | None](), list[int | None]()
    for number, limit in enumerate(limits):
        with_rows = [epoch for epoch in before if epoch.newest_us[number] is not None]
        since = (with_rows or before)[-1 if with_rows else 0].now_us if before else now_us
        all_inputs.append(max((epoch.newest_us[number] or 0 for epoch in with_rows), default=None))
        if limit is None or now_us - since < limit:
            awake.append(all_inputs[-1])
    reached = awake or all_inputs
    return None if None in reached else min(us for us in reached if us is not None) - LATE.late_us


@settings(max_examples=200, deadline=None)
@given(epochs, limits)
def test_the_watermark_is_the_least_of_the_inputs_that_are_not_idle(
    drawn: list[tuple[int, tuple[int | None, ...]]], limits: tuple[int | None, ...]
) -> None:
    state, history, now_us = OperatorState(), list[Seen](), 1000
    watermark: int | None = None
    for passed, newest_us in drawn:
        now_us += passed
        found = told(history, now_us, limits)
        watermark = watermark if found is None else max(found, found if watermark is None else watermark)
        moment = moment_of(state, LATE, now_us, limits)
        assert watermark_of(moment, LATE) == watermark
        state = after_epoch(state, moment, tuple(BEGINNING_US if us is None else us for us in newest_us), now_us)
        history.append(Seen(now_us, newest_us))


def test_a_stream_that_has_been_silent_for_long_enough_holds_back_no_other() -> None:
    state = after_epoch(OperatorState(), Moment(), (500, 100), 1000)
    idle = None, 30
    assert moment_of(state, LATE, 1029, idle) == Moment(90)
    assert moment_of(state, LATE, 1030, idle) == Moment(490)
    assert moment_of(state, LATE, 1030) == Moment(90), "nobody said that it may be idle"
    assert moment_of(state, LATE, 9999, (30, 30)) == Moment(90), "all have paused alike"


def test_a_pause_between_two_epochs_does_not_stop_the_time_of_a_single_stream() -> None:
    state = OperatorState(due_us=150)
    for newest_us, now_us in ((100, 1000), (200, 1060)):
        state = after_epoch(state, moment_of(state, LATE, now_us, (30,)), (newest_us,), now_us)
    assert state.watermark_us == 90
    assert moment_of(state, LATE, 1120, (30,)) == Moment(190, 90)
    assert may_expire(state, LATE, 1120, (30,))


def test_time_does_not_go_back_when_an_idle_stream_sends_again() -> None:
    state = after_epoch(OperatorState(), Moment(), (500, 100), 1000)
    state = after_epoch(state, Moment(490), (BEGINNING_US, 200), 1040)
    assert moment_of(state, LATE, 1050, (None, 30)) == Moment(490, 490)


def test_a_stream_that_turns_idle_makes_something_due() -> None:
    state = after_epoch(OperatorState(due_us=400), Moment(), (500, 100), 1000)
    assert not may_expire(state, LATE, 1029, (None, 30))
    assert may_expire(state, LATE, 1030, (None, 30))


def computing(*epochs: tuple[int, int, int]) -> EpochComputation:
    """A join of two sources, of which the second may be idle for 30 s; by epoch when it was planned, and offsets."""
    app = App("app")
    left = app.source("left", sources.generator(1)).key_by("key")
    right = app.source("right", sources.generator(1), idle="30 seconds").key_by("key")
    left.join("both", right, time=("due_time", "due_time"), window="1 hour").sink("out", sinks.memory())

    def logged(path: str) -> bytes:
        planned_s, *offsets = epochs[int(path.removeprefix("spark/offsets/"))]
        return "\n".join(["v1", json.dumps({"batchTimestampMs": planned_s * 1000}), *map(str, offsets)]).encode()

    bound = SimpleNamespace(graph=app.graph(), logics={"both": SimpleNamespace(clock=LATE)})
    inputs = SimpleNamespace(names=("left", "right"))
    history = SimpleNamespace(store=SimpleNamespace(get=logged), sources=2)
    return EpochComputation("app", cast(Any, bound), cast(Any, inputs), cast(Any, history), cast(Any, None))


def test_a_source_that_goes_on_sending_after_a_long_epoch_is_not_idle() -> None:
    """Both had rows in the first epoch; the next one comes a minute later."""
    state = after_epoch(OperatorState(), Moment(), (500, 100), 1000 * 1_000_000)
    parent = cast(Manifest, SimpleNamespace(operators={"both": state}))

    def watermark_us(*epochs: tuple[int, int, int]) -> int:
        planned_us = epochs[-1][0] * 1_000_000
        return computing(*epochs)._moments(parent, Epoch(len(epochs) - 1), planned_us)["both"].watermark_us

    assert watermark_us((1000, 5, 5), (1060, 9, 9)) == 90, "the right source has rows in this epoch, too"
    assert watermark_us((1000, 5, 5), (1060, 9, 5)) == 490, "it has none"
    assert watermark_us((1000, 5, 5), (1031, 9, 5), (1060, 9, 9)) == 490, "it had none when it was looked at last"
