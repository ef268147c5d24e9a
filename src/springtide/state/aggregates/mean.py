"""The mean of a numeric column; nulls are skipped."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, require
from springtide.state.aggregates.decimals import is_number, mean_of, mean_type, total_type


@dataclass(frozen=True)
class Mean:
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            is_number(kind),
            "mean",
            self.column,
            kind,
            "integers, floating-point numbers or decimals",
        )
        return [_total_type(kind), pa.int64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return mean_type(kind) if pa.types.is_decimal(kind) else pa.float64()

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        return self.combine(
            [values.cast(_total_type(values.type), safe=False), pc.is_valid(values).cast(pa.int64())], starts
        )

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        total, n = parts
        return [add_segments(total, starts), add_segments(n, starts)]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        total, n = parts
        if pa.types.is_decimal(total.type):
            return mean_of(total, n)
        return pc.divide(total, n.cast(pa.float64()))


def _total_type(kind: pa.DataType) -> pa.DataType:
    return total_type(kind) if pa.types.is_decimal(kind) else pa.float64()
