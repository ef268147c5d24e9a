"""Streams that meet in a step, as one DataFrame: each row has its side's number, and columns of its own side alone."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from springtide.dataflow.graph import Sides
from springtide.engine.epoch.sql import quoted, sql_type
from springtide.engine.spark.internals import select
from springtide.state.sides import ROW, SIDE, side_column

Columns = tuple[tuple[str, ...], ...]
"""By side: the columns that its rows get, in SQL."""


def columns_of(node: Sides, sides: Sequence[StructType]) -> Columns:
    """The first side's key, the side's number, and a struct for each side: null but for the row's own."""
    own = [[name for name in side.names if name not in key] for side, key in zip(sides, node.keys, strict=True)]
    kinds = [
        sql_type(StructType([side[name] for name in names])) if names else f"STRUCT<{quoted(ROW)}: BOOLEAN>"
        for side, names in zip(sides, own, strict=True)
    ]
    found = []
    for number, (key, names) in enumerate(zip(node.keys, own, strict=True)):
        keys = [f"{quoted(column)} AS {quoted(name)}" for column, name in zip(key, node.keys[0], strict=True)]
        values = ["NULL"] * len(kinds)
        values[number] = f"struct({', '.join(map(quoted, names)) or 'true'})"  # The cast names its fields.
        structs = [
            f"CAST({value} AS {kind}) AS {quoted(side_column(side))}"
            for side, (value, kind) in enumerate(zip(values, kinds, strict=True))
        ]
        found.append((*keys, f"{number} AS {quoted(SIDE)}", *structs))
    return tuple(found)


def together(parents: Sequence[DataFrame], columns: Columns) -> DataFrame:
    """The rows of all sides."""
    sides = (select(parent, selected) for parent, selected in zip(parents, columns, strict=True))
    return reduce(DataFrame.union, sides)
