"""About how many different non-null values a column has; exact as long as they are few."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, require
from springtide.state.aggregates.distinct import unique_lists
from springtide.state.aggregates.ordering import has_order
from springtide.state.aggregates.sketched import Sketched, is_sketched
from springtide.state.aggregates.sketches import CountingSketch
from springtide.state.keys import canonical

FEW = 64


@dataclass(frozen=True)
class ApproxDistinct(Sketched):
    column: str
    sketch: CountingSketch

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        require(
            kind is not None and has_order(kind),
            "approx_distinct",
            self.column,
            kind,
            "numbers, strings, binary or times",
        )
        return [pa.list_(kind), pa.binary()]

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        self.accumulator(kind)
        return pa.int64()

    @property
    def few(self) -> int:
        return FEW

    def lists(self, values: pa.Array, groups: Starts, keys: int) -> pa.Array:
        return unique_lists(canonical(values), groups, keys)

    def readable(self, values: pa.Array) -> Sequence[int | str]:
        """Numbers and times as the integers that their bits are, all else as text; different values stay different."""
        kind = values.type
        if pa.types.is_boolean(kind):
            values = values.cast(pa.uint8())
        elif pa.types.is_decimal(kind):
            values = values.cast(pa.string())
        if pa.types.is_primitive(values.type):
            return values.view(f"uint{values.type.bit_width}").to_numpy().tolist()  # type: ignore[no-any-return]
        # The library leaves out empty text, so none is empty.
        some, nothing = (pa.scalar(text, pa.large_binary()) for text in (b".", b""))
        raw = pc.binary_join_element_wise(values.cast(pa.large_binary()), some, nothing)
        return list(map(str, raw.to_pylist(), repeat("latin-1")))

    def made(self, sketches: Sequence[bytes], values: Sequence[int | str]) -> bytes:
        return self.sketch.made(sketches, values)

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        counts = pc.list_value_length(parts[0]).to_numpy(zero_copy_only=False).astype(np.int64)
        many = is_sketched(parts[1])
        counts[many] = [self.sketch.count(sketch) for sketch in parts[1].drop_null().to_pylist()]
        return pa.array(counts)
