"""What the controller decided for one app, cycle by cycle; JSON lines in the checkpoint, where it changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from springtide.blocks.store import Store
from springtide.control.lines import Lines

DIRECTORY = "shedding"
CHUNK = 64
"""Entries in one file."""


@dataclass(frozen=True)
class Shed:
    """One decision."""

    number: int
    at: float
    accuracy: Mapping[str, float]
    """By query: the share of its sources' rows that is processed for it."""
    admitted: Mapping[str, int]
    """By source: the rows that it may give in an epoch."""
    reasons: Sequence[str]
    missing: float = 0.0
    """Rows a second that come and that not even the minimum accuracies leave room for; 0 if all fits."""
    comes: float = 0.0
    """Rows a second that come."""
    allowed: float = 0.0
    """Rows a second that the minimum accuracies leave room for."""


class ShedLog:
    """Goes on with the numbers of an earlier driver. What is decided again is not written again."""

    def __init__(self, store: Store) -> None:
        self._lines = Lines(store, DIRECTORY, CHUNK)
        before = read_shed_log(store)
        for entry in before[-CHUNK:]:
            self._lines.remember(entry.number, asdict(entry))
        self.last = before[-1] if before else None

    def add(
        self, at: float, accuracy: Mapping[str, float], admitted: Mapping[str, int], reasons: Sequence[str]
    ) -> None:
        """Note a decision, if it is another one than before."""
        last = self.last
        if last is not None and dict(last.accuracy) == dict(accuracy) and (not reasons or admitted):
            return
        number = 1 if last is None else last.number + 1
        self.last = Shed(number, at, dict(accuracy), dict(admitted), tuple(reasons))
        self._lines.put(number, asdict(self.last))


def read_shed_log(store: Store) -> list[Shed]:
    """All that was noted, oldest first."""
    return [Shed(**fields) for fields in Lines(store, DIRECTORY, CHUNK).read()]
