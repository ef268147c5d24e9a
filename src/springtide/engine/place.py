"""Where a row stands in its source, for sources that may give equal rows: shedding tells them apart by it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACE = "__springtide_place"
"""A hash of a row's place; only in apps that may shed."""
_METADATA = "_metadata"


def of_record() -> Column:
    """The place of a record of a topic."""
    return F.xxhash64("topic", "partition", "offset").alias(PLACE)


def in_files(rows: DataFrame, kind: str) -> list[Column]:
    """The place of a row of files: its file, and its number in it where Spark tells, which is in Parquet.

    Not how the files were split for tasks, which may be another way when an epoch is repeated. None if the rows have
    a column of the name by which Spark tells of files.
    """
    if _METADATA in rows.columns:
        return []
    fields = ["file_path", *(["row_index"] if kind == "parquet" else [])]
    return [F.xxhash64(*(f"{_METADATA}.{field}" for field in fields)).alias(PLACE)]
