"""Input rate, output rate and latency around a request, for plots."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from springtide.errors import BadValue
from springtide.metrics.migration.course import began_at, ordered, rows_given
from springtide.metrics.migration.flow import Flow, usual_spread_s
from springtide.metrics.report import EpochReport


@dataclass(frozen=True)
class TimelinePoint:
    """How it went in the window that ends here."""

    at_s: float
    """Since the request; negative before it."""
    rows_in_per_s: float
    """Rows that epochs took, repeated ones too."""
    rows_out_per_s: float
    latency_s: float | None
    """Of the epochs' newest rows, on average over rows; None if nothing came out, or sources can't tell."""


def timeline(
    reports: Iterable[EpochReport],
    asked_at: float,
    *,
    window_s: float = 10.0,
    step_s: float = 1.0,
    repeats_are_output: bool = False,
) -> tuple[TimelinePoint, ...]:
    """Moving averages, a moment each step, for as long as the reports cover whole windows; the request is at 0."""
    for name, value in (("window_s", window_s), ("step_s", step_s)):
        if not value > 0:
            raise BadValue(f"{name}: expected more than 0 seconds, got {value}")
    found = ordered(reports)
    if not found:
        return ()
    ends = [report.ended_at - asked_at for report in found]
    taken = [(began_at(report) - asked_at, report.rows_in) for report in found]
    given = [rows_given(report, repeats=repeats_are_output) for report in found]
    spread_s = usual_spread_s(ends, 0.0)
    incoming = Flow.of(taken, spread_s)
    outgoing = Flow.of(zip(ends, given, strict=True), spread_s)
    told = [0 if report.latency_s is None else rows for report, rows in zip(found, given, strict=True)]
    weights = [0, *accumulate(told)]
    sums = [0.0, *accumulate(n * (r.latency_s or 0.0) for n, r in zip(told, found, strict=True))]

    def latency_s(at: float) -> float | None:
        first, last = bisect_right(ends, at - window_s), bisect_right(ends, at)
        rows = weights[last] - weights[first]
        return (sums[last] - sums[first]) / rows if rows else None

    # What the epoch after the last report took is not known, and it may have begun as soon as that one had.
    steps = range(math.ceil((ends[0] + window_s) / step_s), math.floor(max(at for at, _ in taken) / step_s) + 1)
    return tuple(
        TimelinePoint(at, incoming.rate(at, window_s), outgoing.rate(at, window_s), latency_s(at))
        for at in (step * step_s for step in steps)
    )
