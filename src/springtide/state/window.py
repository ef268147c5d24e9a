"""Event-time windows: which ones a row belongs to, and when they are over."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.state.clock import Clock, EventTime, WallTime
from springtide.state.keys import Indices
from springtide.state.position import Positions, slice_bits

WINDOW_START = "window_start"
WINDOW_END = "window_end"
FINAL = "final"


@dataclass(frozen=True)
class Window:
    """Windows of `size_us`, one every `slide_us`, aligned to the Unix epoch.

    A window is over when the newest event time seen is `late_us` past its end; by processing time, when the wall clock
    has reached its end.
    """

    column: str | None
    """With the event times; None for windows by processing time."""
    size_us: int
    slide_us: int
    late_us: int
    ahead_us: int | None = None
    """Rows whose event time is further ahead of the clock do not count; None if all do."""
    early_us: int | None = None
    """How often an open window tells of its rows so far, by the newest event time; None for in each epoch."""

    def __post_init__(self) -> None:
        if self.size_us <= 0 or self.slide_us <= 0 or self.late_us < 0:
            raise BadValue(
                f"{self._words}: size and slide must be positive and late not negative, "
                f"got size={self.size_us} µs, slide={self.slide_us} µs, late={self.late_us} µs"
            )
        if self.early_us is not None and self.early_us <= 0:
            raise BadValue(f"{self._words}: early must be positive, got {self.early_us} µs")
        if self.ahead_us is not None and self.ahead_us < 0:
            raise BadValue(f"{self._words}: ahead must not be negative, got {self.ahead_us} µs")
        if self.slide_us > self.size_us:
            raise BadValue(
                f"{self._words}: a slide longer than the size would drop rows between windows; "
                f"got size={self.size_us} µs, slide={self.slide_us} µs"
            )

    @property
    def _words(self) -> str:
        return "window by processing time" if self.column is None else f"window over {self.column!r}"

    @property
    def clock(self) -> Clock:
        """What it closes by."""
        return WallTime() if self.column is None else EventTime(self.late_us)

    def next_result(self, ends_us: npt.NDArray[np.int64], watermark_us: int) -> npt.NDArray[np.int64]:
        """When windows that have just had rows give out a result: at their end, or early."""
        if self.early_us is None:
            return ends_us
        newest_us = watermark_us + self.late_us
        return np.minimum(ends_us, newest_us - newest_us % self.early_us + self.early_us - self.late_us)

    def kind(self, rows: pa.Schema) -> pa.DataType:
        """The type of its starts and ends: in microseconds, with the zone of the event times or without one."""
        return pa.timestamp("us", "UTC" if self.column is None else rows.field(self.column).type.tz)

    def times(self, rows: pa.Table, now_us: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Each row's time, and whether it has one; by processing time, all have that of the epoch."""
        if self.column is None:
            return np.full(rows.num_rows, now_us), np.ones(rows.num_rows, np.bool_)
        return event_times(rows.column(self.column))

    @property
    def panes(self) -> int:
        """How many panes as long as the slide a window is made of; 1 if it is not made of whole ones."""
        return self.size_us // self.slide_us if self.size_us % self.slide_us == 0 else 1

    def assign(self, event_us: npt.NDArray[np.int64]) -> tuple[Indices, npt.NDArray[np.int64]]:
        """For every (row, window) pair: the row's number and the window's start."""
        last = event_us - event_us % self.slide_us
        copies = -(-self.size_us // self.slide_us)
        starts = (last[:, None] - np.arange(copies) * self.slide_us).ravel()
        rows = np.repeat(np.arange(len(event_us)), copies)
        inside = starts + self.size_us > event_us[rows]
        return rows[inside], starts[inside]


def event_times(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Microseconds since the Unix epoch, and which rows have a time at all."""
    array = column.combine_chunks().cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False), valid


def spread(positions: Positions, starts_us: npt.NDArray[np.int64], slices: int) -> Positions:
    """Positions of (key, window) pairs: in the key's own slice, and apart from each other."""
    bits = slice_bits(slices)
    mixed = starts_us.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    within = np.uint64((1 << (64 - bits)) - 1)
    return (positions & ~within) | ((positions ^ mixed) & within)
