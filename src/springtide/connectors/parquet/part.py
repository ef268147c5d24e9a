"""The parts of an epoch as files."""

import io

import pyarrow as pa
import pyarrow.parquet as pq


def part_name(part: int) -> str:
    return f"part-{part:05d}.parquet"


def encoded(rows: pa.Table) -> memoryview:
    """A part's bytes."""
    buffer = io.BytesIO()
    pq.write_table(rows, buffer)
    return buffer.getbuffer()
