"""Where a record stands in its source: shedding goes by that, before anybody looks into the record.

It does not depend on the task that reads a record, nor on how files were split for tasks: a repeated epoch may be read
by others.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StructType, VariantType

PLACE = "__springtide_place"
"""A hash of a record's place; only in apps that may shed."""
_METADATA = "_metadata"
_UNHASHABLE = (MapType, VariantType)


def of_record() -> Column:
    """The place of a record of a topic."""
    return F.xxhash64("topic", "partition", "offset").alias(PLACE)


def of_number(column: str) -> Column:
    """The place of a row that has a number of its own."""
    return F.xxhash64(column).alias(PLACE)


def of_line(file: str, text: str) -> Column:
    """The place of a line of a file: its number is not known, so lines that are alike share one."""
    return F.xxhash64(file, text).alias(PLACE)


def in_files(rows: DataFrame, kind: str) -> Column:
    """The place of a row of files: its file, and its number in it where Spark tells, which is in Parquet.

    Else what the row holds stands for its number; rows that are alike share one place.
    """
    if _METADATA in rows.columns:  # A column of that name hides what Spark tells of files.
        return of_row(rows)
    file = f"{_METADATA}.file_path"
    parts = [f"{_METADATA}.row_index"] if kind == "parquet" else hashable(rows)
    return F.xxhash64(file, *parts).alias(PLACE)


def of_row(rows: DataFrame) -> Column:
    """What stands for the place of a row of which nothing else is known: all that it holds."""
    return F.xxhash64(F.lit(0), *hashable(rows)).alias(PLACE)


def hashable(rows: DataFrame) -> list[str]:
    """The columns that have a hash, quoted."""
    return [f"`{column.name.replace('`', '``')}`" for column in rows.schema if _hashable(column.dataType)]


def _hashable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_hashable(field.dataType) for field in kind)
    element = getattr(kind, "elementType", None)
    return not isinstance(kind, _UNHASHABLE) and (element is None or _hashable(element))
