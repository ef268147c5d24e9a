"""Timers of a reducer: at most one a key, by event time or by the wall clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.chain import FOREVER_US
from springtide.state.clock import Clock, EventTime, WallTime
from springtide.state.errors import BadUpdate
from springtide.state.logic import BEGINNING_US, Moment
from springtide.state.row_times import RowTimes

TIMER = "$timer"
"""The column of the state with the time that a key's timer is set to; null if it is not set."""
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Timing:
    """What the timers of a reducer go by."""

    ring: Callable[..., Any]
    """Called for the keys whose timers have come, as the reducer is for those that have rows."""
    times: RowTimes | None = None
    """None for timers by the wall clock."""
    late_us: int = 0
    zone: str | None = "UTC"
    """Of the times that the reducer sees and sets: that of the event times, if they have one."""

    @property
    def clock(self) -> Clock:
        return WallTime() if self.times is None else EventTime(self.late_us)

    @property
    def kind(self) -> pa.DataType:
        """The type of timers."""
        return pa.timestamp("us", self.zone)

    def checked(self, timers: object, keys: int) -> pa.Array:
        """One timer or null a key, or an error that says what is off."""
        found = timers.combine_chunks() if isinstance(timers, pa.ChunkedArray) else timers
        if not isinstance(found, pa.Array) or len(found) != keys or not pa.types.is_timestamp(found.type):
            got = f"{len(found)} of {found.type}" if isinstance(found, pa.Array) else type(found).__name__
            raise BadUpdate("timers", f"one timestamp or null a key ({keys})", got)
        try:
            return found.cast(self.kind)
        except pa.ArrowInvalid as error:
            raise BadUpdate("timers", f"times that fit {self.kind}", str(error)) from error

    def expiries(self, timers: pa.Array, moment: Moment) -> npt.NDArray[np.int64]:
        """When each timer rings: one that is set to a time that has passed, as soon as time goes on."""
        set_us = pc.fill_null(timers.view(pa.int64()), FOREVER_US).to_numpy(zero_copy_only=False)
        times: npt.NDArray[np.int64] = np.maximum(set_us, moment.watermark_us + 1)
        return times


class Timer:
    """The timer of a key, in the hands of a reducer: what it sets holds until it rings, or is set or cancelled anew.

    >>> timer = Timer(noon := datetime(2026, 1, 1, 12))
    >>> timer.set(noon + timedelta(minutes=30))
    >>> timer.at
    datetime.datetime(2026, 1, 1, 12, 30)
    >>> timer.cancel()
    """

    def __init__(self, now: datetime | None, at: datetime | None = None) -> None:
        self.now = now
        """Where the step's clock stands: the watermark, or the wall clock; None before the first event time."""
        self.at = at
        """When it rings; None if it is not set."""

    def set(self, at: datetime) -> None:
        """Ring once the clock has reached this time."""
        if not isinstance(at, datetime):
            raise BadUpdate("timer", "a datetime", repr(at))
        self.at = at

    def cancel(self) -> None:
        """Do not ring."""
        self.at = None


def clock_time(time_us: int, zone: str | None) -> datetime | None:
    """A clock's time for people; None before there is one."""
    if time_us == BEGINNING_US:
        return None
    plain = EPOCH + timedelta(microseconds=time_us)
    return plain if zone is None else plain.replace(tzinfo=UTC)
