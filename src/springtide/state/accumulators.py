"""The aggregates of a step, as columns: summarised where rows are read, combined where the state is, finished there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.base import Overflowed, Starts
from springtide.state.aggregates.estimate import result_fields, results, summarise
from springtide.state.aggregates.inputs import OrderedRows, kind_of, needed
from springtide.state.errors import NumericOverflow
from springtide.state.group import key_text
from springtide.state.keys import Indices

Mask = npt.NDArray[np.bool_]
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

    def continued(self, before: Parts, fresh: Parts, known: Mask, keys: KeyedBy) -> Parts:
        """Fresh accumulators, each merged with the one before it where there is one; `before` has those alone."""
        if not known.any():
            return fresh
        order, starts = _interleaved(known)
        taken = pa.array(order)
        both = {name: pa.concat_arrays([before[name], new]).take(taken) for name, new in fresh.items()}
        return self.combine(both, starts, keys)

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


def _interleaved(known: Mask) -> tuple[Indices, Indices]:
    """The order that puts each known key's old value before its new one, and where each key starts."""
    sizes = known.astype(np.int64) + 1
    starts = np.cumsum(sizes) - sizes
    old, new = int(known.sum()), len(known)
    order = np.empty(old + new, np.int64)
    order[starts[known]] = np.arange(old)
    order[starts + known] = np.arange(old, old + new)
    return order, starts


@contextmanager
def _telling(name: str, aggregate: Aggregate, keys: KeyedBy) -> Iterator[None]:
    """An overflow names the key it is of."""
    try:
        yield
    except Overflowed as error:
        what = "rows" if aggregate.column is None else f"column {aggregate.column!r}"
        raise NumericOverflow(name, what, key_text(keys.names, keys.columns, error.group), error.room) from None
