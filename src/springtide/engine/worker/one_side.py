"""Rows of one input of a step that has several, as rows of all of them. Runs on workers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.sides import ROW, SIDE, side_column, side_schemas

OWN = "__own"
"""How the names of a side's own columns begin on their way. Spark takes a dot in a name for a part of it."""


@dataclass(frozen=True)
class OneSide:
    """Gives rows their side's number and the columns of the other sides, which are null.

    What comes has the key under the names of the first side's, and then the side's own columns in their places. Other
    columns stay as they are.
    """

    number: int
    rows: pa.Schema
    """Of all sides."""

    @property
    def places(self) -> list[str]:
        """Names for the side's own columns on their way."""
        return [f"{OWN}_{i}" for i, name in enumerate(self._own.names) if name != ROW]

    @property
    def _own(self) -> pa.Schema:
        return side_schemas(self.rows)[self.number]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = self.places
        for batch in batches:
            rows = batch.num_rows
            columns = {name: batch.column(name) for name in batch.schema.names if name not in places}
            columns[SIDE] = pa.array(np.full(rows, self.number, np.int32))
            own = [batch.column(place) for place in places] or [pa.array(np.ones(rows, np.bool_))]
            fields = [pa.field(name, column.type) for name, column in zip(self._own.names, own, strict=True)]
            for side in range(len(side_schemas(self.rows))):
                column = side_column(side)
                mine = side == self.number
                columns[column] = (
                    pa.StructArray.from_arrays(own, fields=fields)
                    if mine
                    else pa.nulls(rows, self.rows.field(column).type)
                )
            yield pa.RecordBatch.from_pydict(columns)
