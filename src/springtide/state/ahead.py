"""How far event time may run ahead of the clock: one row of the year 9999 must not make all later ones late."""

import numpy as np
import numpy.typing as npt

from springtide.state.logic import BEGINNING_US, Moment

DEFAULT = "1 day"
"""More than clocks and time zones differ by, and less than what a wrong unit or a placeholder date makes of a time."""

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def believed(times: Times, valid: Mask, ahead_us: int | None, moment: Moment) -> Mask:
    """The rows that have an event time which is not too far ahead of the clock that the epoch has seen."""
    if ahead_us is None or moment.now_us is None:
        return valid
    return valid & (times <= moment.now_us + ahead_us)


def newest(times: Times, mask: Mask) -> int:
    """The newest event time of some rows; the beginning if there are none."""
    return int(times[mask].max()) if mask.any() else BEGINNING_US
