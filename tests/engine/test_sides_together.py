"""The columns that rows of several streams get on their common way, and types as they stand in SQL."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from springtide.dataflow.graph import Sides
from springtide.engine.epoch.sides_together import columns_of
from springtide.engine.epoch.sql import sql_type

LEFT = StructType([StructField("id", LongType()), StructField("x y", IntegerType(), nullable=False)])
RIGHT = StructType([StructField("k", LongType())])


def test_each_side_has_its_key_its_number_and_its_own_columns() -> None:
    left, right = columns_of(Sides("way", ("left", "right"), (("id",), ("k",)), "met"), (LEFT, RIGHT))
    assert left == (
        "`id` AS `id`",
        "0 AS `__side`",
        "CAST(struct(`x y`) AS STRUCT<`x y`: int>) AS `__side_0`",
        "CAST(NULL AS STRUCT<`__row`: BOOLEAN>) AS `__side_1`",
    )
    assert right == (
        "`k` AS `id`",
        "1 AS `__side`",
        "CAST(NULL AS STRUCT<`x y`: int>) AS `__side_0`",
        "CAST(struct(true) AS STRUCT<`__row`: BOOLEAN>) AS `__side_1`",
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LongType(), "bigint"),
        (ArrayType(StringType(), containsNull=False), "ARRAY<string>"),
        (MapType(StringType(), BooleanType()), "MAP<string, boolean>"),
        (StructType([StructField("a`b", ArrayType(LEFT))]), "STRUCT<`a``b`: ARRAY<STRUCT<`id`: bigint, `x y`: int>>>"),
    ],
)
def test_types_as_sql_has_them(kind: DataType, text: str) -> None:
    assert sql_type(kind) == text
