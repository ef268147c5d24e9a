"""The aggregates of a step, as columns: summarised where rows are read, combined where the state is, finished there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.adding import Overflowed
from springtide.state.aggregates.base import Starts
from springtide.state.aggregates.estimate import result_fields, results, summarise
from springtide.state.aggregates.inputs import OrderedRows, kind_of, needed
from springtide.state.errors import IntegerOverflow
from springtide.state.group import key_text

Parts = Mapping[str, pa.Array]
"""Accumulators by column: `NAME.0`, `NAME.1`, … for the aggregate NAME."""


@dataclass(frozen=True)
class KeyedBy:
    """The keys that accumulators belong to, so that an error can name one."""

    names: Sequence[str]
    columns: Sequence[pa.Array]


@dataclass(frozen=True)
class Accumulators:
    """By result: its aggregate, over rows with these columns."""

    rows: pa.Schema
    aggregates: Mapping[str, Aggregate]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are aggregated, and those of conditions."""
        return needed(self.aggregates.values())

    @property
    def fields(self) -> list[pa.Field]:
        """The accumulators' columns."""
        return [
            pa.field(f"{name}.{i}", kind)
            for name, aggregate in self.aggregates.items()
            for i, kind in enumerate(aggregate.accumulator(self._kind(aggregate)))
        ]

    @property
    def results(self) -> list[pa.Field]:
        """The output's columns."""
        return [f for name, each in self.aggregates.items() for f in result_fields(name, each, self._kind(each))]

    def summarise(
        self, rows: pa.Table, order: pa.Array, starts: Starts, kept: float, keys: KeyedBy
    ) -> dict[str, pa.Array]:
        """Accumulators of raw rows, taken in an order, for each key that starts in it."""
        found: dict[str, pa.Array] = {}
        ordered = OrderedRows(rows, order)
        for name, aggregate in self.aggregates.items():
            values = ordered.values(aggregate)
            with _telling(name, aggregate, keys):
                parts = summarise(aggregate, values, len(order), starts, kept)
            found |= {f"{name}.{i}": part for i, part in enumerate(parts)}
        return found

    def combine(self, parts: Parts, starts: Starts, keys: KeyedBy) -> dict[str, pa.Array]:
        """Accumulators merged, for each key that starts in their order."""
        found: dict[str, pa.Array] = {}
        for name, aggregate in self.aggregates.items():
            names = self._parts(name)
            with _telling(name, aggregate, keys):
                found |= zip(names, aggregate.combine([parts[n] for n in names], starts), strict=True)
        return found

    def finish(self, parts: Parts, keys: KeyedBy) -> dict[str, pa.Array]:
        """The results of accumulators."""
        found: dict[str, pa.Array] = {}
        for name, aggregate in self.aggregates.items():
            with _telling(name, aggregate, keys):
                found |= results(name, aggregate, [parts[n] for n in self._parts(name)])
        return found

    def _kind(self, aggregate: Aggregate) -> pa.DataType | None:
        return kind_of(aggregate, self.rows)

    def _parts(self, name: str) -> list[str]:
        return [f.name for f in self.fields if f.name.rpartition(".")[0] == name]


@contextmanager
def _telling(name: str, aggregate: Aggregate, keys: KeyedBy) -> Iterator[None]:
    """An overflow names the key it is of."""
    try:
        yield
    except Overflowed as error:
        what = "rows" if aggregate.column is None else f"column {aggregate.column!r}"
        raise IntegerOverflow(name, what, key_text(keys.names, keys.columns, error.group)) from None
