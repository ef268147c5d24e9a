"""An overload: the rate rises past what an app can work on, stays there, and falls again; and what a run showed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from springtide.connectors.generator import rates
from springtide.control.shed.log import ShedDecision
from springtide.metrics.report import EpochReport

TOPICS = ("hailed", "booked")
STEP_S = 0.5
"""How often the rate changes while it rises or falls."""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Overload:
    """How the rate goes."""

    phases_s: tuple[float, float, float, float]
    """How long the rate rises, stays, falls, and stays low."""
    settle_s: float = 15.0
    """How long the rate is low before it rises: the first epochs with more than a few drives are slower than others."""
    factors: tuple[float, float] = (0.5, 1.6)
    """The low and the high rate, in times of the capacity. Minima of 0.4 and 0.6 allow for twice it."""

    def profile(self, capacity: float) -> rates.Rate:
        """The rate of each topic."""
        rise_s, stay_s, fall_s, _ = self.phases_s
        low, high = (factor * capacity / len(TOPICS) for factor in self.factors)
        up = _ramp(self.settle_s, rise_s, low, high)
        down = _ramp(self.settle_s + rise_s + stay_s, fall_s, high, low)
        return rates.step([(0.0, low), *up, *down])


def _ramp(since_s: float, for_s: float, start: float, end: float) -> list[tuple[float, float]]:
    count = max(1, round(for_s / STEP_S))
    return [(since_s + i * for_s / count, start + (end - start) * (i + 1) / count) for i in range(count)]


@dataclass(frozen=True)
class Arrivals:
    """What was sent to one topic: the drives sent by each time."""

    at_s: Numbers
    rows: Numbers

    def by(self, at_s: float | Numbers) -> Numbers:
        """Drives sent by a time."""
        return np.asarray(np.interp(at_s, self.at_s, self.rows))

    def sent_at(self, row: Numbers) -> Numbers:
        """When drives were sent, by their number."""
        return np.asarray(np.interp(row, self.rows, self.at_s))


@dataclass(frozen=True)
class Overloaded:
    """What a run showed. Times are seconds since the Unix epoch."""

    name: str
    reports: tuple[EpochReport, ...]
    arrivals: Mapping[str, Arrivals]
    began_s: float
    """When the rate began to rise."""
    peak_s: tuple[float, float]
    """When it had risen, and when it began to fall."""
    ended_s: float
    sent: int
    counted: Mapping[str, int]
    """By query: the drives that its last results tell of."""
    decisions: tuple[ShedDecision, ...] = ()
    """What the controller noted."""

    @cached_property
    def taken(self) -> dict[str, list[int]]:
        """By topic: the drives taken by the end of each epoch."""
        return {topic: np.cumsum([_rows(r, topic) for r in self.reports]).tolist() for topic in self.arrivals}

    @cached_property
    def starts_s(self) -> list[float]:
        """When each epoch began."""
        return [report.ended_at - report.phases.total_s for report in self.reports]

    @cached_property
    def taken_before(self) -> list[int]:
        """The drives taken before each epoch, and before the one after the last."""
        return [0, *(sum(rows) for rows in zip(*self.taken.values(), strict=True))]

    def sent_by(self, at_s: float) -> float:
        """Drives sent by a time."""
        return float(sum(arrivals.by(at_s) for arrivals in self.arrivals.values()))

    def worked_off_by(self, at_s: float) -> float:
        """Drives worked off by a time, those of an epoch evenly from its start to its end."""
        times = [
            at for start, report in zip(self.starts_s, self.reports, strict=True) for at in (start, report.ended_at)
        ]
        before = self.taken_before
        rows = [done for first, last in pairwise(before) for done in (first, last)]
        return float(np.interp(at_s, times, rows))


def _rows(report: EpochReport, topic: str) -> int:
    return next(source.rows_in or 0 for source in report.sources if source.name == topic)
