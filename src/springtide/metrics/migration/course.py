"""The course of a migration: what has to be known of it, beside the epoch reports, to measure it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from springtide.metrics.report import EpochReport

RESTART, DRAIN, CAPTURE = "restart", "drain", "capture"
STOPPING = frozenset({RESTART, DRAIN, CAPTURE})
"""Strategies under which the app stands still while its workers are swapped; all others are live."""


@dataclass(frozen=True)
class Course:
    """From the request to the end. Times are seconds since the Unix epoch."""

    strategy: str
    asked_at: float
    ended_at: float | None = None
    """However it ended; None if it goes on."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """When each began."""
    last_begun: int | None = None
    """The last epoch that had begun when it was asked for, finished or not; None if nobody took note."""

    @property
    def stops(self) -> bool:
        return self.strategy in STOPPING

    @property
    def resumed_at(self) -> float | None:
        """When swapped workers began to take up their work; None if that never came, or there was no swap."""
        return self.phases.get("init") if self.stops else None

    def lasted_s(self, first: str, then: str) -> float | None:
        """From the beginning of a phase to that of a later one, or to the end if that never came.

        None if the first never began, or if it goes on.
        """
        began, over = self.phases.get(first), self.phases.get(then, self.ended_at)
        return None if began is None or over is None else max(0.0, over - began)

    def split(self, reports: Iterable[EpochReport]) -> tuple[list[EpochReport], list[EpochReport]]:
        """The epochs that ended up to the request, and those after it, each in the order of their ends."""
        found = ordered(reports)
        return [r for r in found if r.ended_at <= self.asked_at], [r for r in found if r.ended_at > self.asked_at]


def ordered(reports: Iterable[EpochReport]) -> list[EpochReport]:
    """In the order of their ends, each once: logs of two drivers may overlap."""
    found = {(report.ended_at, report.epoch): report for report in reports}
    return [found[key] for key in sorted(found)]


def began_at(report: EpochReport) -> float:
    """When an epoch took its rows."""
    return report.ended_at - report.phases.total_s


def rows_given(report: EpochReport, *, repeats: bool = False) -> int:
    """Rows that an epoch gave to sinks: none if it was repeated, as they had them before, unless repeats count too."""
    return report.rows_out if repeats or not report.replayed else 0
