"""The value of a column in the first row by some columns: null if that row has none, or if there is no row."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, require
from springtide.state.aggregates.ordering import ORDERED, By, has_order
from springtide.state.aggregates.top_rows import TopRows


@dataclass(frozen=True)
class OneRow:
    """`TopRows` of one row and one column, without list and struct around it."""

    name: str
    by: tuple[By, ...]
    shown: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self._rows.columns

    @property
    def column(self) -> str:
        return self._rows.column

    @property
    def _rows(self) -> TopRows:
        return TopRows(1, self.by, (self.shown,))

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        assert kind is not None
        for field in kind:
            require(has_order(field.type), self.name, field.name, field.type, ORDERED)
        return self._rows.accumulator(kind)

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        (rows,) = self.accumulator(kind)
        return rows.value_type.field(self.shown).type

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        return self._rows.partial(values, rows, starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        return self._rows.combine(parts, starts)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        found = pc.list_value_length(parts[0]).to_numpy(zero_copy_only=False) > 0
        places = pa.array(np.cumsum(found) - 1, mask=~found)
        return parts[0].flatten().field(self.shown).take(places)
