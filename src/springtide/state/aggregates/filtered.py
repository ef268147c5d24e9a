"""An aggregate over those rows alone that a condition is true of; the others are null to it."""

from dataclasses import dataclass

import pyarrow as pa

from springtide.conditions.condition import SqlCondition
from springtide.state.aggregates.base import Aggregate, Starts


@dataclass(frozen=True)
class Filtered:
    """Any aggregate that skips nulls. One of rows gets a column that is null where a row does not count."""

    aggregate: Aggregate
    where: SqlCondition
    of_rows: bool = False

    @property
    def column(self) -> str | None:
        return None if self.of_rows else self.aggregate.column

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        return self.aggregate.accumulator(kind)

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return self.aggregate.result(kind)

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        return self.aggregate.partial(values, rows, starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        return self.aggregate.combine(parts, starts)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return self.aggregate.finish(parts)


def unfiltered(aggregate: Aggregate) -> Aggregate:
    """The aggregate itself, without its condition."""
    return aggregate.aggregate if isinstance(aggregate, Filtered) else aggregate


def where_true(name: str, aggregate: Aggregate, where: str | None) -> Aggregate:
    """The aggregate as it is, or of those rows for which SQL text is true; BadCondition names it as `name`."""
    return aggregate if where is None else Filtered(aggregate, SqlCondition.of(f"agg.{name}", where))
