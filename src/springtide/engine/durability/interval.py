"""How often the state is made durable: after a number of epochs, or after a time."""

from dataclasses import dataclass

from springtide.dataflow.duration import microseconds
from springtide.errors import BadValue

MOST_EPOCHS = 100
"""The most from one checkpoint to the next, however short epochs are: all of them are remembered, to be repeated."""


@dataclass(frozen=True)
class Interval:
    """From one durable checkpoint to the next."""

    epochs: int = 1
    seconds: float | None = None

    @classmethod
    def of(cls, given: "int | str | Interval") -> "Interval":
        """A number of epochs, or a time such as `"30 seconds"`."""
        if isinstance(given, Interval):
            return given
        in_time = isinstance(given, str) and not given.isdecimal()
        found = cls(MOST_EPOCHS, microseconds(str(given)) / 1_000_000) if in_time else cls(int(given))
        if found.epochs < 1 or found.seconds == 0:
            raise BadValue(f"expected a number of epochs from 1, or a time such as '30 seconds', got {given!r}")
        return found

    @property
    def each_epoch(self) -> bool:
        return self.epochs == 1

    def passed(self, epochs: int, seconds: float, *, times: int = 1) -> bool:
        """True once `times` whole intervals fit into these epochs or seconds."""
        in_time = self.seconds is not None and seconds >= self.seconds * times
        return epochs >= self.epochs * times or (epochs > 0 and in_time)

    def __str__(self) -> str:
        return f"{self.epochs} epochs" if self.seconds is None else f"{self.seconds:g} s"
