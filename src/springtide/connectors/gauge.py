"""How far an app is with a source."""

from typing import Protocol

from springtide.metrics.report import SourceReport


class SourceGauge(Protocol):
    """Measures one source."""

    def measure(self, offset: str, before: str | None, now: float) -> SourceReport:
        """What an epoch took that ended at an offset, and what it left; `before` is None for the first epoch."""

    def close(self) -> None:
        """Measure no more."""
