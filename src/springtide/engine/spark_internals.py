"""Every use of a non-public Spark or PySpark API, in one place.

A Spark release may change any of these without notice; `tests/spark/test_spark_internals.py` tells.
"""

import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows that Spark hands to Python, with times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of rows that Python hands to Spark."""
    return from_arrow_schema(schema)


def observed(observation: Observation, metric: str) -> int:
    """A metric of an observed DataFrame that was used; 0 if Spark found that it needed none of its rows."""
    java = observation._jo
    return int(observation.get[metric]) if java is not None and java.getRow().length() else 0
