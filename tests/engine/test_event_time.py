"""The watermark of a keyed step, epoch by epoch."""

from dataclasses import replace

from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.engine.epoch.event_time import after_epoch, may_expire, moment_of, watermark_of
from springtide.ids import Epoch
from springtide.state.clock import EventTime
from springtide.state.logic import BEGINNING_US, Moment

LATE = EventTime(10)


def test_the_watermark_is_what_earlier_epochs_have_shown_less_how_late_rows_may_be() -> None:
    state, seen = OperatorState(), []
    for newest_us in (100, 150, 120, BEGINNING_US, 300):
        moment = moment_of(state, LATE)
        seen.append(watermark_of(moment, LATE))
        state = after_epoch(state, moment, (newest_us,))
    assert seen == [None, 90, 140, 140, 140], "an epoch goes by those before it, and time never goes back"
    assert moment_of(state, LATE) == Moment(290, 140)


def test_a_longer_lateness_does_not_turn_time_back() -> None:
    before = OperatorState(newest_us=(100,))
    state = after_epoch(before, moment_of(before, LATE), (100,))
    assert moment_of(state, EventTime(500)) == Moment(90, 90)


def test_a_step_without_event_time_has_no_watermark() -> None:
    state = after_epoch(OperatorState(), moment_of(OperatorState(), None), (BEGINNING_US,))
    assert (state.newest_us, state.watermark_us) == ((BEGINNING_US,), None)
    assert watermark_of(moment_of(OperatorState(newest_us=(100,)), None), None) is None


def test_the_input_that_has_come_least_far_counts() -> None:
    state = after_epoch(OperatorState(), Moment(), (500, BEGINNING_US))
    assert moment_of(state, LATE) == Moment(), "nobody knows how far the second one is"
    state = after_epoch(state, Moment(), (600, 100))
    assert moment_of(state, LATE) == Moment(90)
    state = after_epoch(state, Moment(90), (BEGINNING_US, 700))
    assert (state.newest_us, moment_of(state, LATE)) == ((600, 700), Moment(590, 90))


def run(expires_us: tuple[int, int] | None) -> BlockRef:
    return BlockRef("run", "step", Epoch(1), 10, 100, 7, SliceSet.parse("0-3"), expires_us)


def test_something_may_expire_if_the_next_watermark_reaches_it() -> None:
    state = OperatorState((run((110, 300)),), newest_us=(130,), watermark_us=100)
    assert may_expire(state, LATE), "at 120, and 110 is in it"
    assert not may_expire(replace(state, runs=(run((121, 300)),)), LATE)
    assert not may_expire(replace(state, runs=(run((50, 100)),)), LATE), "that has expired"
    assert not may_expire(replace(state, newest_us=(110,)), LATE), "the watermark stands where it is"
    assert not may_expire(replace(state, newest_us=(130, BEGINNING_US)), LATE), "nobody knows what time it is"
    assert not may_expire(state, None)
    assert not may_expire(replace(state, runs=(run(None),)), LATE)
