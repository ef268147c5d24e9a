"""Sheds rows where they are produced. Which ones is decided by a hash of row and epoch: a repeat sheds the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import DataType, MapType, StructType, VariantType

from springtide.dataflow.graph import Node, Source
from springtide.dataflow.kafka import MALFORMED
from springtide.dataflow.sources import CORRUPT
from springtide.engine.utility import Cut, cut, histogram, worth
from springtide.ids import Epoch
from springtide.plan.shedding import BITS, threshold

LOT = "__springtide_lot"
"""The column with a row's hash, as a number of 63 bits."""
WORTH = "__springtide_worth"
"""The column with a row's utility, as a whole number; only where rows have one."""
_UNHASHABLE = (MapType, VariantType)


@dataclass(frozen=True)
class Producer:
    """A source's or a keyed step's rows in one epoch, each with the number that decides whether it is kept."""

    rows: DataFrame
    broken: str | None
    """The column that is not null in records that could not be read."""
    cuts: Mapping[float, Cut] = field(default_factory=dict)
    """By share: which utilities are kept, if rows have any."""

    @property
    def sound(self) -> str:
        """What holds for rows that could be read, in SQL."""
        return "true" if self.broken is None else f"{self.broken} IS NULL"

    def kept(self, share: float) -> str:
        """What holds for rows that are kept, in SQL."""
        if share >= 1:
            return "true"
        if share not in self.cuts:
            return f"({LOT} < {threshold(share)}L)"
        at = self.cuts[share]
        return f"({WORTH} > {at.worth}L OR ({WORTH} = {at.worth}L AND {LOT} < {threshold(at.share)}L))"

    def shed(self, share: float) -> DataFrame:
        """The rows that are kept, as they were."""
        return self.rows.filter(self.kept(share)).drop(LOT, WORTH)


def producer(frame: DataFrame, node: Node, epoch: Epoch, shares: Sequence[float]) -> Producer:
    """The rows of a producer, ready to be shed to these shares.

    The choice depends on the row alone, and not on the task that reads it: another one may read it when the epoch is
    repeated. Equal rows share one fate, and a key with many of them would swing between all and nothing. So rows of
    sources that may give equal ones have their place as a column, where it is known.
    """
    columns = [f"`{c.name.replace('`', '``')}`" for c in frame.schema if _hashable(c.dataType)]
    parts = [f"{epoch}L", f"'{node.name}'", *columns]
    utility = node.utility if isinstance(node, Source) else None
    more = [] if utility is None else [f"{worth(utility)} AS {WORTH}"]
    rows = frame.selectExpr("*", f"xxhash64({', '.join(parts)}) & {(1 << BITS) - 1}L AS {LOT}", *more)
    found = Producer(rows, next((name for name in (CORRUPT, MALFORMED) if name in frame.columns), None))
    some = [share for share in shares if share < 1]
    if utility is None or not some:
        return found
    counts = histogram(rows.filter(found.sound), WORTH)
    return Producer(rows, found.broken, {share: cut(counts, share) for share in some})


def _hashable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_hashable(field.dataType) for field in kind)
    element = getattr(kind, "elementType", None)
    return not isinstance(kind, _UNHASHABLE) and (element is None or _hashable(element))


@dataclass(frozen=True)
class Tally:
    """One producer's rows in one epoch."""

    offered: int
    dead_letters: int
    kept: Mapping[float, int]
    """By share: the rows that a consumer with it gets."""
    shed: Mapping[float, int]
    """By share: the rows that it does not get. Counted as well: an account that is worked out always agrees."""


def tally(producers: Mapping[str, Producer], shares: Mapping[str, Sequence[float]]) -> dict[str, Tally]:
    """Count, in one job, the rows of producers and how many of them each share keeps.

    Rows are counted as rows of a result and not by accumulators, which count a task twice if it is repeated.
    """
    counts = None
    for number, (name, each) in enumerate(sorted(producers.items())):
        kept = ", ".join(f"count_if({each.sound} AND {each.kept(share)})" for share in shares[name])
        shed = ", ".join(f"count_if({each.sound} AND NOT {each.kept(share)})" for share in shares[name])
        one = each.rows.selectExpr(
            f"{number} AS n", "count(1) AS offered", f"count_if(NOT ({each.sound})) AS dead", f"array({kept}) AS kept",
            f"array({shed}) AS shed",
        )  # fmt: skip
        counts = one if counts is None else counts.union(one)
    assert counts is not None, "there is a producer"
    found = {row.n: row for row in counts.collect()}
    return {name: _tally(found[n], shares[name]) for n, name in enumerate(sorted(producers))}


def _tally(counts: Row, shares: Sequence[float]) -> Tally:
    by_share = (dict(zip(shares, found, strict=True)) for found in (counts.kept, counts.shed))
    return Tally(counts.offered, counts.dead, *by_share)
