"""What steps must give whose keys are forgotten, in plain Python: epoch after epoch, key after key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state_kit import Hash, Row

Key = str | None
Known = dict[str, Any]
Fold = Callable[[Key, list[list[Row]], Known | None], tuple[Known | None, list[Row]]]
"""Key, its rows of each input, and what is known of it → what is known of it then, output rows."""


@dataclass
class Remembering:
    """Keys are known until the clock has reached `until`: a span after their newest row."""

    fold: Fold
    span_us: int
    inputs: int = 1
    late_us: int | None = None
    """None for the wall clock."""
    hash_of: Hash = hash
    known: dict[Key, Known] = field(default_factory=dict)
    until: dict[Key, int] = field(default_factory=dict)
    newest: dict[int, int] = field(default_factory=dict)
    clock: int | None = None

    def epoch(self, rows: list[list[Row]], now_us: int) -> list[Row]:
        """The output of an epoch; `rows` are those of each input, with their time in `us`."""
        self._tick(now_us)
        for key in [key for key, until in self.until.items() if self.clock is not None and until <= self.clock]:
            del self.until[key], self.known[key]
        if self.late_us is not None:
            rows = [[row for row in side if row["us"] is not None] for side in rows]
        out: list[Row] = []
        for key in {row["k"]: None for side in rows for row in side}:
            known, told = self.fold(
                key, [[row for row in side if row["k"] == key] for side in rows], self.known.get(key)
            )
            out += told
            until = max(self._until(key, rows), self.until.get(key, 0))
            self.known.pop(key, None)
            self.until.pop(key, None)
            if known is not None:
                self.known[key], self.until[key] = known, until
        for side, some in enumerate(rows):
            for row in some:
                self.newest[side] = max(self.newest.get(side, row["us"] or 0), row["us"] or 0)
        return out

    def _tick(self, now_us: int) -> None:
        reached: int | None = now_us
        if self.late_us is not None:
            reached = min(self.newest.values()) - self.late_us if len(self.newest) == self.inputs else None
        if reached is not None:
            self.clock = reached if self.clock is None else max(self.clock, reached)

    def _until(self, key: Key, rows: list[list[Row]]) -> int:
        """Keys with one hash are remembered as long as the one that has come last of them."""
        if self.late_us is None:
            assert self.clock is not None
            return self.clock + self.span_us
        near = [row["us"] for side in rows for row in side if self.hash_of((row["k"],)) == self.hash_of((key,))]
        return max(max(near) + self.span_us, 0 if self.clock is None else self.clock + 1)


def totals(key: Key, rows: list[list[Row]], known: Known | None) -> tuple[Known | None, list[Row]]:
    """A count and a sum; a reducer forgets a key with a sum of zero."""
    values = [row["v"] for row in rows[0]]
    found = {"n": len(values), "total": sum(values)}
    if known is not None:
        found = {name: found[name] + known[name] for name in found}
    return found, [{"k": key, **found}]


def unless_zero(key: Key, rows: list[list[Row]], known: Known | None) -> tuple[Known | None, list[Row]]:
    found, told = totals(key, rows, known)
    assert found is not None
    return (found if found["total"] else None), told


def first(key: Key, rows: list[list[Row]], known: Known | None) -> tuple[Known | None, list[Row]]:
    return {}, [] if known is not None else rows[0][:1]


def sizes(key: Key, rows: list[list[Row]], known: Known | None) -> tuple[Known | None, list[Row]]:
    before = known or {"left": 0, "right": 0}
    found = {name: before[name] + len(side) for name, side in zip(("left", "right"), rows, strict=True)}
    return found, [{"k": key, **found}]


def pairs(key: Key, rows: list[list[Row]], known: Known | None) -> tuple[Known | None, list[Row]]:
    """Each pair once, when the later one of it comes; null keys meet nothing."""
    if key is None:
        return None, []
    before: Mapping[str, list[Row]] = known or {"left": [], "right": []}
    lefts, rights = rows
    met = [(a, b) for a in lefts for b in [*before["right"], *rights]] + [
        (a, b) for a in before["left"] for b in rights
    ]
    told = [{"k": key, "at": a["at"], "v": a["v"], "at_right": b["at"], "v_right": b["v"]} for a, b in met]
    return {"left": [*before["left"], *lefts], "right": [*before["right"], *rights]}, told
