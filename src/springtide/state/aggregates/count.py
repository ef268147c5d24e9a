"""Count rows, or the non-null values of a column."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, lengths


@dataclass(frozen=True)
class Count:
    column: str | None = None

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        return [pa.int64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return pa.int64()

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        if values is None:
            return [pa.array(lengths(starts, rows), pa.int64())]
        return self.combine([pc.is_valid(values).cast(pa.int64())], starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        return [add_segments(parts[0], starts)]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return parts[0]
