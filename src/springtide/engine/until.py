"""When an app ends by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.errors import BadValue
from springtide.metrics.report import EpochReport


@dataclass(frozen=True)
class Until:
    """Any of these ends the app; with none it runs until it is stopped."""

    available: bool = False
    """All that the sources have now is done."""
    epochs: int | None = None
    """Epochs computed by this run; those without input, which happen because something else is due, do not count."""
    rows: int | None = None
    """Rows taken from the sources by this run."""
    seconds: float | None = None

    def reached(self, reports: Sequence[EpochReport]) -> bool:
        """Whether the epochs so far are enough; one that is only published again does not count."""
        new = [r for r in reports if not r.replayed]
        if self.epochs is not None and sum(not r.without_input for r in new) >= self.epochs:
            return True
        return self.rows is not None and sum(r.rows_in for r in new) >= self.rows

    @classmethod
    def parse(cls, text: str) -> "Until":
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
