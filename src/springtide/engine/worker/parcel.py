"""Parcels: the rows of an epoch on their way through the shuffle.

Rows cross the shuffle as Arrow tables, one binary value for each instance and reading task: Spark
moves bytes, not rows.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from springtide.engine.record import MapStats

INSTANCE = "__springtide_instance"
PARCEL = StructType(
    [
        StructField(INSTANCE, IntegerType()),
        StructField("stats", StringType()),
        StructField("payload", BinaryType()),
    ]
)


def parcel(instance: int, stats: str | None, payload: pa.Buffer | None) -> pa.RecordBatch:
    """One row for the shuffle: rows for an instance, or what was seen where they were read."""
    if payload is None:
        data = pa.nulls(1, pa.binary())
    else:
        offsets = pa.py_buffer(np.array([0, payload.size], np.int32))
        data = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, payload])
    columns = [pa.array([instance], pa.int32()), pa.array([stats], pa.string()), data]
    return pa.RecordBatch.from_arrays(columns, [INSTANCE, "stats", "payload"])


def pack(table: pa.Table) -> pa.Buffer:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def unpack(batches: list[pa.RecordBatch]) -> tuple[MapStats, list[pa.Table]]:
    """What was seen where the rows were read, and the tables, without copying them."""
    stats, tables = MapStats(), []
    for batch in batches:
        for text in batch.column("stats").drop_null().to_pylist():
            stats += MapStats.from_json(text)
        for payload in batch.column("payload").drop_null():
            tables.append(pa.ipc.open_stream(payload.as_buffer()).read_all())
    return stats, tables
