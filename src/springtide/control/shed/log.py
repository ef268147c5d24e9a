"""What the controller decided for one app, cycle by cycle; JSON lines in the checkpoint, where it changed."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from springtide import codec
from springtide.blocks.store import Store
from springtide.control.json_lines import Lines

DIRECTORY = "shedding"
CHUNK = 64
"""Entries in one file."""


TOLD = 0.02
"""Of the rows that come: what is missing is told anew when it has changed by more."""


@dataclass(frozen=True)
class ShedDecision:
    """One decision. Rates are rows a second."""

    at: float
    accuracy: Mapping[str, float]
    """By query: the share of its sources' rows that is processed for it."""
    admitted: Mapping[str, int]
    """By source: the rows that it may give in an epoch."""
    reasons: Sequence[str]
    comes: float = 0.0
    """What comes in."""
    allowed: float | None = None
    """What the app keeps up with while all its queries have their minimum accuracy; None if that is not known."""
    missing: float = 0.0
    """What comes in and has to wait, as not even the minimum accuracies leave room for it."""
    number: int = 0
    """Which decision of the app it is."""


class ShedLog:
    """Goes on with the numbers of an earlier driver. What is decided again is not written again."""

    def __init__(self, store: Store) -> None:
        self._lines = Lines(store, DIRECTORY, CHUNK)
        before = read_shed_log(store)
        for entry in before[-CHUNK:]:
            self._lines.remember(entry.number, codec.plain(entry))
        self.last = before[-1] if before else None
        self._unwritten: list[ShedDecision] = []
        self._writing = threading.Lock()

    def note(self, decision: ShedDecision) -> None:
        """Note a decision, if it is another one than before; `write` keeps it."""
        last = self.last
        if last is not None and _same(last, decision):
            return
        self.last = replace(decision, number=1 if last is None else last.number + 1)
        self._unwritten.append(self.last)

    def write(self) -> None:
        """Write what was noted. It waits for the store, so nobody calls it who holds up others."""
        with self._writing:
            while self._unwritten:
                decision = self._unwritten[0]
                self._lines.put(decision.number, codec.plain(decision))
                del self._unwritten[0]


def _same(before: ShedDecision, now: ShedDecision) -> bool:
    """Whether a decision is what was decided before; one without read limits is a remark, told for its reasons."""
    remark = bool(now.reasons) and not now.admitted and tuple(now.reasons) != tuple(before.reasons)
    known = bool(before.missing) == bool(now.missing) and abs(now.missing - before.missing) <= TOLD * now.comes
    return dict(before.accuracy) == dict(now.accuracy) and known and not remark


def read_shed_log(store: Store) -> list[ShedDecision]:
    """All that was noted, oldest first."""
    return [codec.convert(ShedDecision, fields) for fields in Lines(store, DIRECTORY, CHUNK).read()]
