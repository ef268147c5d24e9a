"""Spans of time as people write them."""

import re
from datetime import timedelta

from springtide.errors import BadValue

Duration = str | timedelta

_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
LONGEST_US = 10_000_000 * _UNITS_US["day"]
"""Event times and some of these together fit 64 bits."""
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*")


def microseconds(duration: Duration) -> int:
    """A duration in microseconds: '10 minutes', '1.5 seconds' or a timedelta that is not negative.

    >>> microseconds("1.5 seconds")
    1500000
    """
    return _from(0, duration, _read(duration))


def signed_microseconds(duration: Duration) -> int:
    """A duration that may lie in the past, in microseconds: '-5 minutes', '30 minutes' or a timedelta.

    >>> signed_microseconds("-1.5 seconds")
    -1500000
    """
    if isinstance(duration, str) and duration.lstrip().startswith("-"):
        return -microseconds(duration.lstrip()[1:])
    return _from(-LONGEST_US, duration, _read(duration))


def _read(duration: Duration) -> float:
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    match = _FORM.fullmatch(duration) if isinstance(duration, str) else None
    if match is None or match[2] not in _UNITS_US:
        raise BadValue(
            f"{duration!r} is not a duration: expected a timedelta or a number and a unit "
            f"({', '.join(u + 's' for u in _UNITS_US)}), for example '10 minutes'"
        )
    return float(match[1]) * _UNITS_US[match[2]]


def _from(least_us: int, duration: Duration, found_us: float) -> int:
    if not least_us <= found_us <= LONGEST_US:
        least = "0" if least_us == 0 else "-10000000"
        raise BadValue(f"{duration!r} is out of range: expected a duration from {least} to 10000000 days")
    return round(found_us)


def ahead_us(ahead: Duration | None) -> int | None:
    """How far event time may run ahead of the clock, in microseconds; None if that does not matter."""
    return None if ahead is None else microseconds(ahead)
