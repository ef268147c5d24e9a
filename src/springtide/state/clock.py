"""What a keyed step goes by: event time, or the wall clock."""

from dataclasses import dataclass
from enum import Enum


class ProcessingTime(Enum):
    """In place of a column with event times: rows have the time of the epoch that reads them."""

    PROCESSING_TIME = "processing time"


PROCESSING_TIME = ProcessingTime.PROCESSING_TIME
"""In place of a column with event times: `window(PROCESSING_TIME, "10 seconds")`."""


@dataclass(frozen=True)
class EventTime:
    """The newest event time seen, less how late rows may be; of several inputs, that of the one that is least far."""

    late_us: int = 0


@dataclass(frozen=True)
class WallTime:
    """The wall clock when an epoch was planned. A replay sees the same, and no row is late by it."""


Clock = EventTime | WallTime
