"""Parcels: the rows of an epoch on their way through the shuffle.

Rows cross the shuffle as Arrow tables, one binary value for each instance and reading task: Spark
moves bytes, not rows.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, StringType, StructField, StructType

from springtide.engine.record import MapStats

INSTANCE = "__springtide_instance"
PARCEL = StructType(
    [
        StructField(INSTANCE, IntegerType()),
        StructField("backup", BooleanType()),
        StructField("stats", StringType()),
        StructField("payload", BinaryType()),
    ]
)


def parcel(
    instance: int, stats: str | None, payload: pa.Buffer | None, *, backup: bool = False
) -> pa.RecordBatch:
    """One row for the shuffle: rows for an instance, or what was seen where they were read."""
    if payload is None:
        data = pa.nulls(1, pa.binary())
    else:
        offsets = pa.py_buffer(np.array([0, payload.size], np.int32))
        data = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, payload])
    columns = [pa.array([instance], pa.int32()), pa.array([backup]), pa.array([stats], pa.string()), data]
    return pa.RecordBatch.from_arrays(columns, PARCEL.names)


def pack(table: pa.Table) -> pa.Buffer:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@dataclass(frozen=True)
class Received:
    """What came for an instance: rows to process, rows to keep for a neighbour, what was seen on the way."""

    stats: MapStats
    arrivals: list[pa.Table]
    backup: list[pa.Table]


def unpack(batches: list[pa.RecordBatch]) -> Received:
    """The contents of an instance's parcels, without copying them."""
    received = Received(MapStats(), [], [])
    for batch in batches:
        for text in batch.column("stats").drop_null().to_pylist():
            received = replace(received, stats=received.stats + MapStats.from_json(text))
        for payload, backup in zip(batch.column("payload"), batch.column("backup").to_pylist(), strict=True):
            if payload.is_valid:
                table = pa.ipc.open_stream(payload.as_buffer()).read_all()
                (received.backup if backup else received.arrivals).append(table)
    return received
