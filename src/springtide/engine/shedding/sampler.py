"""Sheds rows where they are produced. Which ones is decided by their lots: a repeat sheds the same.

A source's records are shed in the scan, before they are decoded, down to the largest share that a consumer gets. What
is left is counted on its way, by the smallest share that keeps it, so an account takes no job of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from pyspark.sql import DataFrame, Row

from springtide.connectors.record_place import hashable
from springtide.dataflow.source_spec import CORRUPT, MALFORMED
from springtide.engine.shedding.rows_taken import most_told
from springtide.engine.shedding.utility import Cut, cut, histogram, worth
from springtide.ids import Epoch
from springtide.plan.shedding import BITS, threshold

LOT = "__springtide_lot"
"""The column with a row's lot, a number of 63 bits: a share of the rows has a lot below a share of all numbers."""
WORTH = "__springtide_worth"
"""The column with a row's utility, as a whole number; only where rows have one."""
CLASS = "__springtide_class"
"""The column with the number by which a row is counted."""


def lot(producer: str, *parts: str) -> str:
    """A row's lot, in SQL, from parts that tell it from others."""
    return f"(xxhash64('{producer}', {', '.join(parts)}) & {(1 << BITS) - 1}L)"


def below(share: float) -> str:
    """What holds for the rows that a share keeps by their lots, in SQL."""
    return "true" if share >= 1 else f"({LOT} < {threshold(share)}L)"


@dataclass(frozen=True)
class Producer:
    """A source's or a keyed step's rows in one epoch, each with its lot."""

    rows: DataFrame
    cuts: Mapping[float, Cut] = field(default_factory=dict)
    """By share: which utilities are kept, if rows have any."""

    @property
    def broken(self) -> str:
        """What holds for records that could not be read, in SQL."""
        columns = [name for name in (CORRUPT, MALFORMED) if name in self.rows.columns]
        return f"({columns[0]} IS NOT NULL)" if columns else "false"

    def kept(self, share: float) -> str:
        """What holds for rows that are kept, in SQL."""
        if share >= 1 or share not in self.cuts:
            return below(share)
        at = self.cuts[share]
        return f"({WORTH} > {at.worth}L OR ({WORTH} = {at.worth}L AND {below(at.share)}))"

    def shed(self, share: float) -> DataFrame:
        """The rows that are kept, as they were."""
        return self.rows.filter(self.kept(share)).drop(LOT, WORTH)

    def classified(self, shares: Sequence[float]) -> DataFrame:
        """The rows, each with the number of its class first; see `classes`.

        Of the shares, in rising order, the first that keeps a row counts, as what it keeps the others keep, too: twice
        the number of that share, and one more for a record that could not be read.
        """
        cases = " ".join(f"WHEN {self.kept(share)} THEN {i}" for i, share in enumerate(shares))
        first = f"CASE {cases} ELSE {len(shares)} END"
        return self.rows.selectExpr(f"2 * ({first}) + int({self.broken}) AS {CLASS}", "*")


def classes(shares: Sequence[float]) -> int:
    """How many classes there are: two a share, and two for rows that no share keeps."""
    return 2 * (len(shares) + 1)


def by_utility(rows: DataFrame, utility: str, shares: Sequence[float]) -> Producer:
    """Rows that are shed by what they are worth: how many are worth how much is counted first."""
    worthy = rows.selectExpr("*", f"{worth(utility)} AS {WORTH}")
    some = [share for share in shares if share < 1]
    if not some:
        return Producer(worthy)
    counts = histogram(worthy.filter(f"NOT {Producer(worthy).broken}"), WORTH)
    return Producer(worthy, {share: cut(counts, share) for share in some})


def of_step(frame: DataFrame, step: str, epoch: Epoch) -> Producer:
    """The rows of a keyed step. Equal ones share one fate, and another one in another epoch."""
    return Producer(frame.selectExpr("*", f"{lot(step, f'{epoch}L', *hashable(frame))} AS {LOT}"))


@dataclass(frozen=True)
class Tally:
    """One producer's rows in one epoch."""

    offered: int
    kept: Mapping[float, int]
    """By share: the rows that a consumer with it gets."""
    dead_letters: Mapping[float, int]
    """By share: the records that it would have got, and that could not be read."""

    @property
    def malformed(self) -> int:
        """The records that could not be read, of all that somebody looked into."""
        return max(self.dead_letters.values(), default=0)

    def shed(self, share: float) -> int:
        """The rows that a consumer does not get. Nobody has looked into them, so dead letters may be among them."""
        return self.offered - self.kept[share] - self.dead_letters[share]


@dataclass(frozen=True)
class Counted:
    """What tasks tell of the rows of a source that were not shed."""

    shares: Sequence[float]
    """In rising order."""
    told: Callable[[], Iterable[str]]

    def tally(self, offered: int) -> Tally:
        """All that was read so far: everything, once the epoch's jobs have ended."""
        counts = most_told(self.told(), classes(self.shares))
        kept, dead = (dict(zip(self.shares, accumulate(counts[first::2]), strict=False)) for first in (0, 1))
        return Tally(offered, kept, dead)


def tally_steps(producers: Mapping[str, Producer], shares: Mapping[str, Sequence[float]]) -> dict[str, Tally]:
    """Count, in one job, the rows of keyed steps and how many of them each share keeps.

    Rows are counted as rows of a result and not by accumulators, which count a task twice if it is repeated.
    """
    counts = None
    for number, (name, each) in enumerate(sorted(producers.items())):
        kept = ", ".join(f"count_if({each.kept(share)})" for share in shares[name])
        one = each.rows.selectExpr(f"{number} AS n", "count(1) AS offered", f"array({kept}) AS kept")
        counts = one if counts is None else counts.union(one)
    found = {} if counts is None else {row.n: row for row in counts.collect()}
    return {name: _tally(found[n], shares[name]) for n, name in enumerate(sorted(producers))}


def _tally(counts: Row, shares: Sequence[float]) -> Tally:
    return Tally(counts.offered, dict(zip(shares, counts.kept, strict=True)), dict.fromkeys(shares, 0))
