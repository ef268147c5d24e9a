"""What aggregates get of rows: a column, several as one struct, or which rows count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from springtide.conditions.condition import SqlCondition
from springtide.errors import BadValue
from springtide.state.aggregates.base import Aggregate
from springtide.state.aggregates.filtered import Filtered, unfiltered
from springtide.state.layout import one_array


def inputs_of(aggregate: Aggregate) -> tuple[str, ...]:
    """The columns that an aggregate summarises."""
    several = _several(aggregate)
    if several is not None:
        return several
    return () if aggregate.column is None else (aggregate.column,)


def needed(aggregates: Iterable[Aggregate]) -> tuple[str, ...]:
    """The columns that aggregates summarise, and those of their conditions."""
    names: dict[str, None] = {}
    for aggregate in aggregates:
        names |= dict.fromkeys(inputs_of(aggregate))
        where = _where(aggregate)
        names |= {} if where is None else dict.fromkeys(column.name for column in where.columns)
    return tuple(names)


def kind_of(aggregate: Aggregate, rows: pa.Schema) -> pa.DataType | None:
    """The type of what an aggregate gets of rows with these columns; None if it only counts them."""
    names = inputs_of(aggregate)
    missing = [name for name in names if name not in rows.names]
    if missing:
        raise BadValue(f"expected an aggregate of columns among {rows.names}, got one of {missing}")
    if _several(aggregate) is not None:
        return pa.struct([rows.field(name) for name in names])
    return rows.field(names[0]).type if names else None


def check_conditions(aggregates: Mapping[str, Aggregate], rows: pa.Schema) -> None:
    """Raise BadCondition if the condition of some aggregate does not fit rows with these columns."""
    for aggregate in aggregates.values():
        where = _where(aggregate)
        if where is not None:
            where.check(rows)


@dataclass(frozen=True)
class OrderedRows:
    """Rows in the order of their keys. Columns are put in order once, and equal conditions are evaluated once."""

    rows: pa.Table
    order: pa.Array
    _taken: dict[tuple[str, SqlCondition | None], pa.Array] = field(default_factory=dict)
    _picks: dict[SqlCondition | None, pa.Array] = field(default_factory=dict)

    def values(self, aggregate: Aggregate) -> pa.Array | None:
        """What an aggregate summarises: null where its condition is not true; None for the rows themselves."""
        names, where = inputs_of(aggregate), _where(aggregate)
        if not names:
            return None if where is None else self._picked(where)
        if _several(aggregate) is None:
            return self._column(names[0], where)
        skipped = None if where is None else pc.is_null(self._picked(where))
        columns = [self._column(name, None) for name in names]
        fields = [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=skipped)

    def _column(self, name: str, where: SqlCondition | None) -> pa.Array:
        if (name, where) not in self._taken:
            self._taken[name, where] = one_array(self.rows.column(name)).take(self._picked(where))
        return self._taken[name, where]

    def _picked(self, where: SqlCondition | None) -> pa.Array:
        """The order, null where the condition is not true."""
        if where is None:
            return self.order
        if where not in self._picks:
            counts = where(self.rows).take(self.order)
            self._picks[where] = pc.if_else(counts, self.order, pa.scalar(None, self.order.type))
        return self._picks[where]


def _where(aggregate: Aggregate) -> SqlCondition | None:
    return aggregate.where if isinstance(aggregate, Filtered) else None


def _several(aggregate: Aggregate) -> tuple[str, ...] | None:
    """The columns of an aggregate that gets several, as one struct."""
    found: tuple[str, ...] | None = getattr(unfiltered(aggregate), "columns", None)
    return found
