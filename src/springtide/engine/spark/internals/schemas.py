"""Schemas between Arrow and Spark."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that Spark hands to Python, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows that Python hands to Spark; times without a zone stay so."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
