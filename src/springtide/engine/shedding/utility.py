"""Shedding by what rows are worth: those of low utility go first, among equals a hash decides."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

STEPS = 1000
"""Utilities are alike if they differ by less than a thousandth: of themselves, or of one if that is more."""
LEAST = -(1 << 62)
"""What a row is worth whose utility is null or no number."""


@dataclass(frozen=True)
class Cut:
    """Rows worth more are kept, of those worth just this much a share."""

    worth: int
    share: float


def worth(expression: str) -> str:
    """A user's expression as a whole number that grows with it, in SQL, so that few different ones are left."""
    value = f"nanvl(double({expression}), NULL)"
    steps = f"signum({value}) * floor(least(log1p(abs({value})), 1000D) * {STEPS})"
    return f"coalesce(bigint({steps}), {LEAST}L)"


def histogram(rows: DataFrame, column: str) -> dict[int, int]:
    """How many rows are worth how much."""
    return {row[0]: row[1] for row in rows.groupBy(column).count().collect()}


def cut(counts: Mapping[int, int], share: float) -> Cut:
    """Where to cut so that the share of rows that is worth most is kept."""
    left = share * sum(counts.values())
    for value in sorted(counts, reverse=True):
        if counts[value] >= left:
            return Cut(value, left / counts[value])
        left -= counts[value]
    return Cut(min(counts, default=0), 1.0)
