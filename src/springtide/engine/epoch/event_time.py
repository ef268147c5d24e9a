"""Time of a keyed step: the watermark that an epoch goes by, and what its rows mean for the next one."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from springtide.blocks.manifest import OperatorState
from springtide.engine.wire.commit_record import newest_of
from springtide.errors import BadValue
from springtide.state.clock import Clock, WallTime
from springtide.state.logic import BEGINNING_US, Moment

Idle = Sequence[int | None]
"""By input: how long it may be silent before it holds back no others; None if it always does."""


def moment_of(state: OperatorState, clock: Clock | None, now_us: int | None = None, idle_us: Idle = ()) -> Moment:
    """What an epoch believes of time: what earlier epochs have shown, less how late rows may be; or the wall clock.

    Of several inputs the one that has come least far counts, among those that are not idle, or of all if they all are:
    a pause between two epochs makes every input idle until its rows are seen. The watermark never goes back. A step
    without a clock, or with an input that has shown no row yet, is at the beginning of time.
    """
    if clock is None:
        return Moment()
    before = BEGINNING_US if state.watermark_us is None else state.watermark_us
    if isinstance(clock, WallTime):
        if now_us is None:
            raise BadValue("expected the wall clock of the epoch for a step that goes by it, got none")
        return Moment(max(before, now_us), before)
    inputs = awake(state, now_us, idle_us) or list(enumerate(state.newest_us))
    slowest_us = min((newest_us for _, newest_us in inputs), default=BEGINNING_US)
    return Moment(before if slowest_us == BEGINNING_US else max(before, slowest_us - clock.late_us), before)


def may_expire(state: OperatorState, clock: Clock | None, now_us: int | None = None, idle_us: Idle = ()) -> bool:
    """Whether an epoch without rows might close something: a window, a session, a timer, the wait of a row for a match.

    The watermark goes by earlier epochs, so what the last one has made due waits for the next one. An epoch without
    rows has told when the next of its keys is due. After others only the range of expiries in each run is known; that
    some in it may have changed since costs one epoch that closes nothing.
    """
    moment = moment_of(state, clock, now_us, idle_us)
    if moment.watermark_us <= moment.previous_watermark_us:
        return False
    if state.due_us is not None:
        return state.due_us <= moment.watermark_us
    ranges = (run.expires_us for run in state.runs)
    return any(r and r[0] <= moment.watermark_us and r[1] > moment.previous_watermark_us for r in ranges)


def after_epoch(
    state: OperatorState, moment: Moment, newest_us: tuple[int, ...], now_us: int | None = None
) -> OperatorState:
    """The state with the epoch's watermark, and by input the newest time of any row and when there was one."""
    newest = newest_of(state.newest_us, newest_us)
    return replace(
        state,
        newest_us=newest,
        seen_us=state.seen_us if now_us is None else _seen(state.seen_us, newest_us, now_us),
        watermark_us=_known(moment.watermark_us),
    )


def watermark_of(moment: Moment, clock: Clock | None) -> int | None:
    """The watermark as it is reported; None for a step without event time, and before the first row."""
    return None if clock is None or isinstance(clock, WallTime) else _known(moment.watermark_us)


def awake(state: OperatorState, now_us: int | None, idle_us: Idle) -> list[tuple[int, int]]:
    """The number, and the newest event time, of each input that is not idle."""
    if now_us is None:
        return list(enumerate(state.newest_us))
    inputs = zip_longest(state.newest_us, state.seen_us, idle_us)
    return [
        (number, BEGINNING_US if newest is None else newest)
        for number, (newest, seen, limit) in enumerate(inputs)
        if limit is None or seen is None or now_us - seen < limit
    ]


def _seen(before: tuple[int, ...], newest_us: tuple[int, ...], now_us: int) -> tuple[int, ...]:
    """By input: the wall clock when it last had a row, or of the first epoch for one that has had none."""
    inputs = zip_longest(before, newest_us, fillvalue=None)
    return tuple(now_us if b is None or (n is not None and n != BEGINNING_US) else b for b, n in inputs)


def _known(time_us: int) -> int | None:
    return None if time_us == BEGINNING_US else time_us
