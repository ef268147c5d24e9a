"""When an app ends by itself."""

from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.metrics.report import EpochReport


@dataclass(frozen=True)
class Covered:
    """What a run has done so far that counts towards its end; an epoch that was true before does not."""

    epochs: int = 0
    """Those with input."""
    rows: int = 0

    def after(self, report: EpochReport) -> "Covered":
        """With one epoch more."""
        if report.replayed:
            return self
        return Covered(self.epochs + (not report.without_input), self.rows + report.rows_in)


@dataclass(frozen=True)
class StopCondition:
    """Any of these ends the app; with none it runs until it is stopped."""

    available: bool = False
    """All that the sources have now is done, and what it has made due by event time is closed."""
    epochs: int | None = None
    """Epochs computed by this run; those without input, which happen because something else is due, do not count."""
    rows: int | None = None
    """Rows taken from the sources by this run."""
    seconds: float | None = None

    def reached(self, covered: Covered) -> bool:
        """Whether a run has done enough."""
        if self.epochs is not None and covered.epochs >= self.epochs:
            return True
        return self.rows is not None and covered.rows >= self.rows

    @classmethod
    def parse(cls, text: str) -> "StopCondition":
        """From `available`, `epochs=10`, `rows=100000` or `seconds=30`."""
        name, _, number = text.partition("=")
        try:
            if name == "available" and not number:
                return cls(available=True)
            if name == "epochs":
                return cls(epochs=int(number))
            if name == "rows":
                return cls(rows=int(number))
            if name == "seconds":
                return cls(seconds=float(number))
        except ValueError:
            pass
        raise BadValue(f"{text!r}: expected available, epochs=N, rows=N or seconds=N")
