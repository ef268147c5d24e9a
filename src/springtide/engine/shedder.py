"""Sheds rows where they are produced. Which ones is decided by a hash of row and epoch: a repeat sheds the same."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, MapType, StructType, VariantType

from springtide.dataflow.graph import Node, Source
from springtide.dataflow.kafka import MALFORMED
from springtide.dataflow.sources import CORRUPT, Streaming
from springtide.ids import Epoch
from springtide.plan.shedding import BITS, threshold

LOT = "__springtide_lot"
"""The column with a row's hash, as a number of 63 bits."""
_UNHASHABLE = (MapType, VariantType)


def with_lots(frame: DataFrame, node: Node, epoch: Epoch) -> DataFrame:
    """The rows of a producer, each with the number that decides whether it is kept.

    Equal rows would share one fate, and a key with many of them would swing between all and nothing. Where a source
    may give equal rows, they are told apart by where they stand as well; but not those of a user's own DataFrame:
    after a shuffle in it, places are not the same when a task is repeated.
    """
    columns = [f"`{c.name.replace('`', '``')}`" for c in frame.schema if _hashable(c.dataType)]
    placed = isinstance(node, Source) and not node.spec.unique_rows and not isinstance(node.spec, Streaming)
    parts = [f"{epoch}L", f"'{node.name}'", *columns, *(["monotonically_increasing_id()"] if placed else [])]
    return frame.selectExpr("*", f"xxhash64({', '.join(parts)}) & {(1 << BITS) - 1}L AS {LOT}")


def shed(frame: DataFrame, share: float) -> DataFrame:
    """Keep a share of the rows; they have had their lots."""
    kept = frame if share >= 1 else frame.filter(f"{LOT} < {threshold(share)}L")
    return kept.drop(LOT)


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
    kept: dict[float, int]
    """By share: the rows that a consumer with it gets."""


def tally(frames: dict[str, DataFrame], shares: dict[str, list[float]]) -> dict[str, Tally]:
    """Count, in one job, the rows of producers and how many of them each share keeps.

    Rows are counted as rows of a result and not by accumulators, which count a task twice if it is repeated.
    """
    counts = None
    for number, (producer, frame) in enumerate(sorted(frames.items())):
        broken = next((name for name in (CORRUPT, MALFORMED) if name in frame.columns), None)
        sound = "true" if broken is None else f"{broken} IS NULL"
        lots = [f"{sound} AND {LOT} < {threshold(s)}L" if s < 1 else sound for s in shares[producer]]
        kept = ", ".join(f"count_if({lot})" for lot in lots)
        one = frame.selectExpr(
            f"{number} AS n", "count(1) AS offered", f"count_if(NOT ({sound})) AS dead", f"array({kept}) AS kept"
        )
        counts = one if counts is None else counts.union(one)
    assert counts is not None, "there is a producer"
    found = {row.n: row for row in counts.collect()}
    return {
        producer: Tally(found[n].offered, found[n].dead, dict(zip(shares[producer], found[n].kept, strict=True)))
        for n, producer in enumerate(sorted(frames))
    }
