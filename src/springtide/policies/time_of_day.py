"""Times of day, in UTC."""

import re
from dataclasses import dataclass

from springtide.errors import BadValue

DAY_S = 24 * 60 * 60
SHAPE = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")


class BadPeriod(BadValue):
    """Not a time of day."""

    def __init__(self, text: object) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"expected a period as two different times of day in UTC, for example '22:00-06:00', got {self.text!r}"


@dataclass(frozen=True)
class Period:
    """From a second of the day up to another one; past midnight if that is the earlier one."""

    start_s: int
    end_s: int

    @classmethod
    def parse(cls, text: str) -> "Period":
        """`22:00-06:00`; BadPeriod if it is none."""
        found = SHAPE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise BadPeriod(text)
        hour, minute, end_hour, end_minute = map(int, found.groups())
        start_s, end_s = 60 * (60 * hour + minute), 60 * (60 * end_hour + end_minute)
        if max(minute, end_minute) > 59 or start_s >= DAY_S or end_s > DAY_S or start_s == end_s:
            raise BadPeriod(text)
        return cls(start_s, end_s)

    def covers(self, at: float) -> bool:
        """Whether a time, in seconds since the Unix epoch, falls into it."""
        second = at % DAY_S
        if self.start_s < self.end_s:
            return self.start_s <= second < self.end_s
        return second >= self.start_s or second < self.end_s

    def __str__(self) -> str:
        def clock(second: int) -> str:
            return f"{second // 3600:02}:{second // 60 % 60:02}"

        return f"{clock(self.start_s)}-{clock(self.end_s)} UTC"
