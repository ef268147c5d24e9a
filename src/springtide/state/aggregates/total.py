"""The sum of a numeric column; nulls are skipped, and the sum of nothing but nulls is null.

Sums of integers and decimals are exact, or an error if they do not fit, as in Spark's ANSI mode.
"""

from dataclasses import dataclass

import pyarrow as pa

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, require
from springtide.state.aggregates.decimals import is_number, sum_type


@dataclass(frozen=True)
class Sum:
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            is_number(kind),
            "sum",
            self.column,
            kind,
            "integers, floating-point numbers or decimals",
        )
        if pa.types.is_decimal(kind):
            return [sum_type(kind)]
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
