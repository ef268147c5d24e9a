"""What the controller decided for one app, cycle by cycle; JSON lines in the checkpoint, where it changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from springtide.blocks.store import Store

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


class ShedLog:
    """Goes on with the numbers of an earlier driver. What is decided again is not written again."""

    def __init__(self, store: Store) -> None:
        self.store = store
        before = read_shed_log(store)
        self._entries = {entry.number: entry for entry in before[-CHUNK:]}
        self._next = before[-1].number + 1 if before else 1

    @property
    def last(self) -> Shed | None:
        return self._entries.get(self._next - 1)

    def add(
        self, at: float, accuracy: Mapping[str, float], admitted: Mapping[str, int], reasons: Sequence[str]
    ) -> None:
        """Note a decision, if it is another one than before."""
        last = self.last
        if last is not None and dict(last.accuracy) == dict(accuracy) and (not reasons or admitted):
            return
        number = self._next
        self._entries[number] = Shed(number, at, dict(accuracy), dict(admitted), tuple(reasons))
        self._next += 1
        first = number - number % CHUNK
        self._entries = {n: entry for n, entry in self._entries.items() if n >= first}
        lines = "".join(f"{json.dumps(asdict(self._entries[n]))}\n" for n in sorted(self._entries))
        self.store.put(f"{DIRECTORY}/{first:09d}.jsonl", lines.encode())


def read_shed_log(store: Store) -> list[Shed]:
    """All that was noted, oldest first."""
    lines: list[str] = []
    for name in store.list(DIRECTORY):
        lines += store.get(f"{DIRECTORY}/{name}").decode().splitlines()
    return [Shed(**json.loads(line)) for line in lines]
