"""Event time of a keyed step: the watermark that an epoch goes by, and what its rows mean for the next one."""

from dataclasses import replace

from springtide.blocks.manifest import OperatorState
from springtide.engine.wire.commit_record import newest_of
from springtide.state.logic import BEGINNING_US, Moment


def moment_of(state: OperatorState, late_us: int | None) -> Moment:
    """What an epoch believes of event time: what earlier epochs have shown, less how late rows may be.

    Of several inputs the one that has come least far counts. The watermark never goes back. A step without event time,
    or with an input that has shown no row yet, is at the beginning of time.
    """
    slowest_us = min(state.newest_us, default=BEGINNING_US)
    if late_us is None or slowest_us == BEGINNING_US:
        return Moment()
    before = BEGINNING_US if state.watermark_us is None else state.watermark_us
    return Moment(max(before, slowest_us - late_us), before)


def may_expire(state: OperatorState, late_us: int | None) -> bool:
    """Whether an epoch without rows might close something: a window, a session, the wait of a row for a match.

    The watermark goes by earlier epochs, so what the last one has made due waits for the next one. Runs know the range
    of expiries in them; that some in it may have changed since costs an epoch that closes nothing.
    """
    moment = moment_of(state, late_us)
    now_us = BEGINNING_US if state.watermark_us is None else state.watermark_us
    ranges = (run.expires_us for run in state.runs)
    return moment.watermark_us > now_us and any(r and r[0] <= moment.watermark_us and r[1] > now_us for r in ranges)


def after_epoch(state: OperatorState, moment: Moment, newest_us: tuple[int, ...]) -> OperatorState:
    """The state with the epoch's watermark and, by input, with the newest time that any row has had."""
    newest = newest_of(state.newest_us, newest_us)
    return replace(state, newest_us=newest, watermark_us=_known(moment.watermark_us))


def watermark_of(moment: Moment, late_us: int | None) -> int | None:
    """The watermark as it is reported; None for a step without event time, and before the first row."""
    return None if late_us is None else _known(moment.watermark_us)


def _known(time_us: int) -> int | None:
    return None if time_us == BEGINNING_US else time_us
