"""Parcels: the rows of an epoch on their way through the shuffle.

Rows cross the shuffle as Arrow tables, one binary value for each instance and reading task: Spark
moves bytes, not rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from springtide import codec
from springtide.engine.wire.commit_record import MapStats

INSTANCE = "__springtide_instance"
PARCEL = StructType(
    [
        StructField(INSTANCE, IntegerType()),
        StructField("backup", BooleanType()),
        StructField("number", LongType()),
        StructField("stats", StringType()),
        StructField("payload", BinaryType()),
    ]
)
PIECE_BYTES = 128 << 20
"""The size of a parcel, unless a single row is larger. Neither Arrow's binary nor a row of Spark's takes 2 GiB."""


def parcel(
    instance: int, stats: str | None, payload: pa.Buffer | None, *, backup: bool = False, number: int = 0
) -> pa.RecordBatch:
    """One row for the shuffle: rows for an instance, or what was seen where they were read.

    Numbers put parcels in the same order wherever they arrive.
    """
    if payload is None:
        data = pa.nulls(1, pa.binary())
    else:
        offsets = pa.py_buffer(np.array([0, payload.size], np.int32))
        data = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, payload])
    address = [pa.array([instance], pa.int32()), pa.array([backup]), pa.array([number], pa.int64())]
    columns = [*address, pa.array([stats], pa.string()), data]
    return pa.RecordBatch.from_arrays(columns, PARCEL.names)


def pack(table: pa.Table) -> pa.Buffer:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    """A table as tables of neighbouring rows that Spark can carry as one value each."""
    if table.nbytes <= PIECE_BYTES or table.num_rows < 2:
        yield table
        return
    half = table.num_rows // 2
    yield from pieces(table.slice(0, half))
    yield from pieces(table.slice(half))


@dataclass(frozen=True)
class Received:
    """What came for an instance: rows to process, rows to keep for a neighbour, what was seen on the way."""

    stats: MapStats
    arrivals: list[pa.Table]
    backup: list[pa.Table]


def unpack(batches: list[pa.RecordBatch]) -> Received:
    """The contents of an instance's parcels, without copying them, in the order of their numbers.

    A shuffle brings them in any order, and a key's rows must be in one order for its owner and for those who stand by.
    """
    stats = MapStats()
    payloads: list[tuple[int, bool, pa.Buffer]] = []
    for batch in batches:
        for text in batch.column("stats").drop_null().to_pylist():
            stats += codec.loads(MapStats, text)
        columns = (batch.column("number").to_pylist(), batch.column("backup").to_pylist(), batch.column("payload"))
        payloads += [(n, backup, data.as_buffer()) for n, backup, data in zip(*columns, strict=True) if data.is_valid]
    payloads.sort(key=lambda payload: payload[0])
    tables = [(backup, pa.ipc.open_stream(data).read_all()) for _, backup, data in payloads]
    return Received(stats, [t for backup, t in tables if not backup], [t for backup, t in tables if backup])
