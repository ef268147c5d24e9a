"""Rows of several streams on one way: each row says which side it is of, and has the columns of that side alone."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from springtide.state.keys import Indices
from springtide.state.layout import one_array

SIDE = "__side"
"""The column with the number of a row's side."""
ROW = "__row"
"""The only column of a side that has none beside its key: a struct without a column is none."""


def side_column(side: int) -> str:
    """The column with a side's own columns, as a struct; null in rows of other sides."""
    return f"{SIDE}_{side}"


def side_schemas(rows: pa.Schema) -> tuple[pa.Schema, ...]:
    """By side: its columns beside the key."""
    count = sum(name.startswith(f"{SIDE}_") for name in rows.names)
    return tuple(pa.schema(list(rows.field(side_column(side)).type)) for side in range(count))


def rows_of(rows: pa.Table, side: int) -> tuple[Indices, pa.Table]:
    """Which rows are of a side, and their own columns."""
    which = np.flatnonzero(one_array(rows.column(SIDE)).to_numpy() == side)
    struct = one_array(rows.column(side_column(side))).take(pa.array(which))
    columns = struct.flatten()
    return which, pa.table(columns, names=[field.name for field in struct.type])


def sided(tables: Sequence[pa.Table], keys: Sequence[Sequence[str]]) -> pa.Table:
    """All rows, each with the first side's key, its side's number, and the columns of its own side.

    `keys` are those of each side. The engine does the same where rows are read (`engine/epoch/build_step.py`).
    """
    own = [_own(table, key) for table, key in zip(tables, keys, strict=True)]
    found = []
    for side, (table, key) in enumerate(zip(tables, keys, strict=True)):
        columns = {name: table.column(column) for name, column in zip(keys[0], key, strict=True)}
        columns[SIDE] = pa.array(np.full(table.num_rows, side, np.int32))
        for other, struct in enumerate(own):
            columns[side_column(other)] = struct if other == side else pa.nulls(table.num_rows, struct.type)
        found.append(pa.table(columns))
    return pa.concat_tables(found)


def _own(table: pa.Table, key: Sequence[str]) -> pa.Array:
    names = [name for name in table.column_names if name not in key]
    columns = [one_array(table.column(name)) for name in names] or [pa.array(np.ones(table.num_rows, np.bool_))]
    fields = [table.schema.field(name) for name in names] or [pa.field(ROW, pa.bool_())]
    return pa.StructArray.from_arrays(columns, fields=fields)
