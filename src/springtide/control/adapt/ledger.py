"""The ledger: every decision with what was seen, why, what was vetoed, what was done and what came of it.

JSON lines in the checkpoint, so that it can be read while the app runs and after it has ended.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from springtide import codec
from springtide.blocks.store import Store
from springtide.control.json_lines import Lines
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.past import AppState, Entry, Past

DIRECTORY = "ledger"
CHUNK = 32
"""Entries in one file; the file of an entry is rewritten when something is learnt of it."""
REMEMBERED = 2_000
"""Entries that policies look back on."""


@dataclass(frozen=True)
class Record:
    """An entry with what people want to know beside it."""

    entry: Entry
    policy: str
    strategy: str
    seen: Mapping[str, Any]
    """The snapshot in short."""
    phases: Mapping[str, float]
    """Of the change: when each began, seconds since the decision."""

    def to_json(self) -> dict[str, Any]:
        entry = self.entry
        return {
            **asdict(entry),
            "wanted": _decision(entry.wanted),
            "decision": _decision(entry.decision),
            "policy": self.policy,
            "strategy": self.strategy,
            "seen": dict(self.seen),
            "phases": dict(self.phases),
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Record":
        rest = {name: fields.pop(name) for name in ("policy", "strategy", "seen", "phases")}
        for name in ("wanted", "decision"):
            fields[name] = _read_decision(fields[name])
        for name in ("gauge", "after"):
            fields[name] = None if fields[name] is None else codec.convert(AppState, fields[name])
        return cls(Entry(**{**fields, "vetoes": tuple(fields["vetoes"])}), **rest)


class Ledger:
    """Records decisions; goes on with the numbers of an earlier driver."""

    def __init__(self, store: Store, policy: str = "", strategy: str = "") -> None:
        self.policy, self.strategy = policy, strategy
        self._lines = Lines(store, DIRECTORY, CHUNK)
        before = read_ledger(store)
        for record in before:
            self._lines.remember(record.entry.number, record.to_json())
        self._records: dict[int, Record] = {record.entry.number: record for record in before}
        self._past: list[Entry] = [record.entry for record in before]
        self.next = max(self._records, default=0) + 1

    @property
    def past(self) -> Past:
        """What policies look back on, oldest first."""
        return tuple(self._past)

    def add(self, entry: Entry, seen: Mapping[str, Any], *, keep: bool = True) -> None:
        """Remember a decision; kept for people too, unless it is the same as before and changes nothing."""
        self._past.append(entry)
        del self._past[:-REMEMBERED]
        if keep:
            self._records[entry.number] = Record(entry, self.policy, self.strategy, seen, {})
            self._write(entry.number)
            self._records = {n: record for n, record in self._records.items() if n >= self._lines.oldest}
        self.next = max(self.next, entry.number + 1)

    def update(self, number: int, phases: Mapping[str, float] | None = None, **learnt: Any) -> Entry:
        """More is known of an entry; returns it with that."""
        record = self._records[number]
        entry = replace(record.entry, **learnt)
        self._records[number] = replace(record, entry=entry, phases=record.phases if phases is None else phases)
        self._past = [entry if old.number == number else old for old in self._past]
        self._write(number)
        return entry

    def _write(self, number: int) -> None:
        self._lines.put(number, self._records[number].to_json())


def read_ledger(store: Store) -> list[Record]:
    """All that was recorded, oldest first."""
    return [Record.from_json(fields) for fields in Lines(store, DIRECTORY, CHUNK).read()]


_DECISIONS: dict[str, type[Decision]] = {"hold": Hold, "scale": Scale, "move": Rebalance}
"""By the kind that is written beside the fields of a decision."""


def _decision(decision: Decision) -> dict[str, Any]:
    kind = next(name for name, each in _DECISIONS.items() if isinstance(decision, each))
    fields = {"kind": kind, **vars(decision)}
    if isinstance(decision, Rebalance):
        fields["slices"] = sorted(decision.slices)
    return fields


def _read_decision(fields: dict[str, Any]) -> Decision:
    return codec.convert(_DECISIONS[fields["kind"]], fields)
