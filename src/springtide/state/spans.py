"""Which rows of two sides may be a match by their event times: those within an interval, or in one window."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from springtide.errors import BadValue
from springtide.state.ahead import Times
from springtide.state.window import WINDOW_END, WINDOW_START


class Span(Protocol):
    """How far apart in event time two rows may be that are a match."""

    def meets(self, left: Times) -> tuple[Times, Times]:
        """For each left time, the first and the last right time that it may be matched with."""

    def left_ends(self, left: Times) -> Times:
        """When a left row can find a match no more, among rows that are not late."""

    def right_ends(self, right: Times) -> Times:
        """When a right row can find a match no more, among rows that are not late."""

    def fields(self, time: pa.DataType) -> list[pa.Field]:
        """The columns that it adds to the joined rows, given the type of their event times."""

    def columns(self, times: Times) -> list[pa.Array]:
        """Those columns, in microseconds, given an event time of each joined row."""


@dataclass(frozen=True)
class Within:
    """How much later than the left row the right one may be; less than zero if it may be earlier."""

    low_us: int
    high_us: int

    def __post_init__(self) -> None:
        if self.low_us > self.high_us:
            raise BadValue(
                f"expected an interval that begins before it ends, got {self.low_us} µs to {self.high_us} µs"
            )

    def meets(self, left: Times) -> tuple[Times, Times]:
        return left + self.low_us, left + self.high_us

    def left_ends(self, left: Times) -> Times:
        return left + self.high_us + 1

    def right_ends(self, right: Times) -> Times:
        return right - self.low_us + 1

    def fields(self, time: pa.DataType) -> list[pa.Field]:
        return []

    def columns(self, times: Times) -> list[pa.Array]:
        return []


@dataclass(frozen=True)
class SameWindow:
    """Both rows are in the same window: windows follow each other without gaps, aligned to the Unix epoch."""

    size_us: int

    def __post_init__(self) -> None:
        if self.size_us <= 0:
            raise BadValue(f"expected a window longer than nothing, got {self.size_us} µs")

    def meets(self, left: Times) -> tuple[Times, Times]:
        starts = self._starts(left)
        return starts, starts + self.size_us - 1

    def left_ends(self, left: Times) -> Times:
        return self._starts(left) + self.size_us

    def right_ends(self, right: Times) -> Times:
        return self._starts(right) + self.size_us

    def fields(self, time: pa.DataType) -> list[pa.Field]:
        kind = pa.timestamp("us", time.tz)
        return [pa.field(WINDOW_START, kind), pa.field(WINDOW_END, kind)]

    def columns(self, times: Times) -> list[pa.Array]:
        starts = self._starts(times)
        return [pa.array(starts, pa.int64()), pa.array(starts + self.size_us, pa.int64())]

    def _starts(self, times: Times) -> Times:
        starts: Times = times - times % self.size_us
        return starts
