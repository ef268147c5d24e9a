"""The sum of a numeric column; nulls are skipped, and the sum of nothing but nulls is null.

A sum of integers that does not fit 64 bits is an error, as in Spark's ANSI mode.
"""

from dataclasses import dataclass

import pyarrow as pa

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, require


@dataclass(frozen=True)
class Sum:
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)),
            "sum",
            self.column,
            kind,
            "integers or floating-point numbers",
        )
        return [pa.int64() if pa.types.is_integer(kind) else pa.float64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        return self.accumulator(kind)[0]

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        return self.combine([values.cast(self.result(values.type))], starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        return [add_segments(parts[0], starts)]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        return parts[0]
