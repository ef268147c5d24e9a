"""The event times of a step's rows: which rows have one, and how far each input has come."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.ahead import Mask, Times, believed, newest
from springtide.state.layout import one_array
from springtide.state.logic import Moment
from springtide.state.sides import SIDE, rows_of
from springtide.state.window import event_times


@dataclass(frozen=True)
class Stamps:
    """What the event times of some rows tell."""

    times_us: Times
    timely: Mask
    """The rows that have a time, and one that is not too far ahead of the clock."""
    malformed: int
    ahead: int
    newest_us: tuple[int, ...]
    """By input: the newest event time."""


@dataclass(frozen=True)
class RowTimes:
    """Where the event time of a row is: a column for each input."""

    columns: tuple[str, ...]
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count; None if all do."""

    def read(self, rows: pa.Table, moment: Moment) -> Stamps:
        """Of several inputs, rows say which side they are of."""
        times, valid = self._times(rows)
        timely = believed(times, valid, self.ahead_us, moment)
        malformed, ahead = int((~valid).sum()), int((valid & ~timely).sum())
        if len(self.columns) == 1:
            return Stamps(times, timely, malformed, ahead, (newest(times, timely),))
        side = one_array(rows.column(SIDE)).to_numpy()
        of_side = tuple(newest(times, timely & (side == number)) for number in range(len(self.columns)))
        return Stamps(times, timely, malformed, ahead, of_side)

    def _times(self, rows: pa.Table) -> tuple[Times, Mask]:
        if len(self.columns) == 1:
            return event_times(rows.column(self.columns[0]))
        times, valid = np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.bool_)
        for side, column in enumerate(self.columns):
            which, own = rows_of(rows, side)
            times[which], valid[which] = event_times(own.column(column))
        return times, valid
