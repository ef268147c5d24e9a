"""Event time of rows of several sides: who is late, who is too far ahead, and how far each side has come."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.ahead import believed, newest
from springtide.state.buffer import Mask
from springtide.state.lateness import Lateness
from springtide.state.layout import Layout
from springtide.state.logic import BEGINNING_US, Arrival, Moment, sorted_rows
from springtide.state.position import Positions
from springtide.state.sides import rows_of
from springtide.state.window import event_times


@dataclass(frozen=True)
class TimedSides:
    """How late rows may be: the watermark trails the side that has come least far by `late_us`."""

    times: tuple[str, ...] = ()
    """By side: the column with the event time; empty if nothing goes by event time."""
    late_us: int | None = None
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count; None if all do."""

    window_us: int = 1
    """Rows are late once the window of this length that they are in is over."""

    def lateness(self, side: int) -> Lateness:
        """Which rows of a side come too late."""
        return Lateness(self.times[side], self.ahead_us, self.window_us, self.window_us)

    @property
    def by_side(self) -> tuple[Lateness, ...]:
        """The same for all sides; empty if nothing goes by event time."""
        return tuple(map(self.lateness, range(len(self.times))))

    def arrive(
        self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment, layout: Layout, of_use: Mask
    ) -> Arrival:
        """The rows that are `of_use`, in time, and have a time at all, sorted by position."""
        late = malformed = ahead = 0
        seen = []
        kept = of_use.copy()
        for side, column in enumerate(self.times):
            which, own = rows_of(rows, side)
            times, valid = event_times(own.column(column))
            timely = believed(times, valid, self.ahead_us, moment)
            fresh = ~self.lateness(side).of(times, moment)
            malformed, ahead = malformed + int((~valid).sum()), ahead + int((valid & ~timely).sum())
            late += int((timely & ~fresh).sum())
            seen.append(newest(times, timely))
            kept[which] &= timely & fresh
        picks = pa.array(np.flatnonzero(kept))
        left = sorted_rows(positions[kept], [key.take(picks) for key in keys], rows.take(picks), layout)
        return Arrival(left, rows.num_rows, late, malformed, tuple(seen) or (BEGINNING_US,), ahead)
