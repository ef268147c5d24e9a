"""The sample variance and standard deviation of a numeric column; nulls are skipped, one value alone has none."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, lengths, require

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Variance:
    """Counts, means and squared distances from the mean are combined: sums of squares would lose digits."""

    column: str
    root: bool = False
    """The standard deviation."""

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)),
            "stddev" if self.root else "variance",
            self.column,
            kind,
            "integers or floating-point numbers",
        )
        return [pa.int64(), pa.float64(), pa.float64()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return pa.float64()

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        counts = pc.is_valid(values).to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = pc.fill_null(values.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
        return _combined(counts, numbers, np.zeros(rows), starts)

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        counts, means, squares = (part.to_numpy(zero_copy_only=False) for part in parts)
        return _combined(counts, means, squares, starts)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        counts, _, squares = (part.to_numpy(zero_copy_only=False) for part in parts)
        variance = squares / np.maximum(counts - 1, 1)
        return pa.array(np.sqrt(variance) if self.root else variance, mask=counts < 2)


def _combined(counts: npt.NDArray[np.int64], means: Numbers, squares: Numbers, starts: Starts) -> list[pa.Array]:
    """Key by key: the count, the mean and the sum of squared distances from it, of parts that are given so."""
    if not len(starts):
        return [pa.array(counts[:0], pa.int64()), pa.array(means[:0]), pa.array(means[:0])]
    with np.errstate(invalid="ignore", over="ignore"):  # Infinity among the values: the result is NaN, as it should be.
        total = np.add.reduceat(counts, starts)
        mean = np.add.reduceat(counts * means, starts) / np.maximum(total, 1)
        apart = means - np.repeat(mean, lengths(starts, len(counts)))
        square = np.add.reduceat(squares + np.where(counts > 0, counts * apart**2, 0.0), starts)
    return [pa.array(total), pa.array(mean), pa.array(square)]
