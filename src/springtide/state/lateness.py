"""Which rows of an input come too late to count."""

from dataclasses import dataclass

import pyarrow as pa

from springtide.state.ahead import Mask, Times, believed
from springtide.state.logic import Moment
from springtide.state.window import Window, event_times


@dataclass(frozen=True)
class Lateness:
    """A row is late once the last window that it is in is over: by default, a window of its microsecond alone."""

    column: str
    """With the event times."""
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count, so they are not late; None if all do."""
    size_us: int = 1
    slide_us: int = 1

    def of(self, times: Times, moment: Moment) -> Mask:
        """Which times are late."""
        late: Mask = times - times % self.slide_us + self.size_us <= moment.watermark_us
        return late

    def rows(self, rows: pa.Table, moment: Moment) -> Mask:
        """Which rows are late; those without a time are not."""
        times, valid = event_times(rows.column(self.column))
        return believed(times, valid, self.ahead_us, moment) & self.of(times, moment)


def of_window(window: Window) -> Lateness | None:
    """For windows: rows count as long as any window that they are in is open. By processing time, no row is late."""
    if window.column is None:
        return None
    return Lateness(window.column, window.ahead_us, window.size_us, window.slide_us)
