"""What a join must give, by looking at every pair of rows with the same key."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

Row = dict[str, Any]
Bag = Counter[tuple[Any, ...]]
KEEPS = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}


def multiset(rows: Iterable[Mapping[str, Any]]) -> Bag:
    """Joined rows with their number, whatever their order."""
    return Counter((r["k"], r["at"], r["x"], r["at_right"], r["y"]) for r in rows)


@dataclass
class JoinOracle:
    """All rows that were not late, and what must have come of them by now."""

    how: str
    low_s: int
    high_s: int
    late_s: int
    lefts: list[Row] = field(default_factory=list)
    rights: list[Row] = field(default_factory=list)
    newest: list[datetime | None] = field(default_factory=lambda: [None, None])
    watermark: datetime | None = None
    dropped: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    """The rows that were late, of either side."""

    def epoch(self, lefts: list[Row], rights: list[Row]) -> None:
        if None not in self.newest:
            reached = min(t for t in self.newest if t is not None) - timedelta(seconds=self.late_s)
            self.watermark = reached if self.watermark is None else max(self.watermark, reached)
        for side, (rows, there) in enumerate(((lefts, self.lefts), (rights, self.rights))):
            key, keeps = ("k", "id")[side], KEEPS[self.how][side]
            useful = [r for r in rows if not self._late(r)]
            self.dropped[side].extend(r for r in rows if self._late(r))
            there += [r for r in useful if r[key] is not None or keeps]
            self.newest[side] = max([r["at"] for r in rows] + [t for t in [self.newest[side]] if t], default=None)

    @property
    def late(self) -> int:
        """How many rows were late."""
        return sum(map(len, self.dropped))

    def _late(self, row: Row) -> bool:
        return self.watermark is not None and row["at"] < self.watermark

    def _pair(self, left: Row, right: Row) -> bool:
        apart = (right["at"] - left["at"]).total_seconds()
        return left["k"] is not None and left["k"] == right["id"] and self.low_s <= apart <= self.high_s

    def _over(self, row: Row, key: str, after_s: int) -> bool:
        gone = self.watermark is not None and row["at"] + timedelta(seconds=after_s) < self.watermark
        return row[key] is None or gone

    def expected(self) -> Bag:
        """All that must have come since the first epoch."""
        left_too, right_too = KEEPS[self.how]
        lefts, rights = _by_key(self.lefts, "k"), _by_key(self.rights, "id")
        pairs = [(a, b) for a in self.lefts for b in rights[a["k"]] if self._pair(a, b)]
        found = [(a["k"], a["at"], a["x"], b["at"], b["y"]) for a, b in pairs]
        for row in self.lefts if left_too else ():
            if self._over(row, "k", self.high_s) and not any(self._pair(row, b) for b in rights[row["k"]]):
                found.append((row["k"], row["at"], row["x"], None, None))
        for row in self.rights if right_too else ():
            if self._over(row, "id", -self.low_s) and not any(self._pair(a, row) for a in lefts[row["id"]]):
                found.append((row["id"], None, None, row["at"], row["y"]))
        return Counter(found)


def _by_key(rows: list[Row], key: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found
