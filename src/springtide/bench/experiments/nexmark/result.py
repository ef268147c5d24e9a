"""What came of a query, by contestant, and what follows from all queries together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median

from springtide.bench.experiments.nexmark.turn import Turn
from springtide.workloads.nexmark.queries.catalogue import Query

OURS, SPARK, FLINK = "springtide", "spark", "flink"
"""The contestants' names in the figures."""


@dataclass(frozen=True)
class Outcome:
    """What came of a query with one contestant."""

    turns: tuple[Turn, ...] = ()
    """Those that count."""
    equal: bool | None = None
    """Its rows are the oracle's; None if it gave none."""
    why_not: str | None = None
    """Why it did not run, or what is wrong with its rows."""

    @property
    def seconds(self) -> float | None:
        """Of a turn; the median."""
        return median(turn.seconds for turn in self.turns) if self.turns else None


@dataclass(frozen=True)
class Result:
    """What came of a query."""

    query: Query
    rows: int
    """Of the tables that it reads."""
    outcomes: Mapping[str, Outcome]

    def of(self, name: str) -> Outcome:
        """Of a contestant; an empty one if it did not compete."""
        return self.outcomes.get(name, Outcome())

    def rows_per_s(self, name: str) -> float | None:
        """Of a contestant; None if it did not run."""
        seconds = self.of(name).seconds
        return None if seconds is None else self.rows / seconds

    def ratio(self, peer: str) -> float | None:
        """How many times as fast as a peer we are; None if one of both did not run."""
        ours, theirs = self.rows_per_s(OURS), self.rows_per_s(peer)
        return None if ours is None or theirs is None else ours / theirs

    def state_mb(self, name: str) -> float | None:
        """At the end of the last turn; None if it did not run or does not tell."""
        turns = self.of(name).turns
        return turns[-1].state_bytes / 1e6 if turns and turns[-1].state_bytes is not None else None


def ratios(results: Iterable[Result], peer: str) -> list[float]:
    """Of those queries with state that both can run."""
    found = [result.ratio(peer) for result in results if result.query.stateful]
    return [ratio for ratio in found if ratio is not None]


def geomean(values: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    known = list(values)
    return geometric_mean(known) if known else None


def supported(results: Iterable[Result]) -> int:
    """How many queries we can run."""
    return sum(bool(result.of(OURS).turns) for result in results)


def wrong(results: Iterable[Result]) -> int:
    """How many of our answers are not the oracle's."""
    return sum(result.of(OURS).equal is False for result in results)
