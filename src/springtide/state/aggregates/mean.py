"""The mean of a numeric column; nulls are skipped."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Starts, require


@dataclass(frozen=True)
class Mean:
    column: str

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)),
            "mean",
            self.column,
            kind,
            "integers or floating-point numbers",
        )
        return [pa.float64(), pa.int64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return pa.float64()

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        return self.combine([values.cast(pa.float64(), safe=False), pc.is_valid(values).cast(pa.int64())], starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        total, n = parts
        return [add_segments(total, starts), add_segments(n, starts)]

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        total, n = parts
        return pc.divide(total, n.cast(pa.float64()))
