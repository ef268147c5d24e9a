"""The events in Parquet files, for whoever reads them: Springtide, Spark, Flink, DuckDB."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from springtide.errors import BadValue
from springtide.workloads.nexmark.events import EVENTS_S, part, side_input

TABLES = ("person", "auction", "bid")
SIDE_INPUT = "side_input.parquet"
_OLDEST_S = 1_700_000_000


def write(directory: str | Path, events: int, seed: int = 0, *, parts: int = 1, events_s: int = EVENTS_S) -> Path:
    """Write `DIRECTORY/person/part-00000.parquet`, the same of `auction` and `bid`, and so on, and the side input.

    Part number i has the same share of the events in each table, so event time goes on together. Whoever reads the
    files by age reads them in this order.
    """
    place = Path(directory)
    if parts < 1:
        raise BadValue(f"expected 1 or more parts, got {parts}")
    for table in TABLES:
        (place / table).mkdir(parents=True, exist_ok=True)
    pq.write_table(side_input(), place / SIDE_INPUT)
    for number in range(parts):
        made = part(events * number // parts, events * (number + 1) // parts, seed, events_s=events_s)
        for table in TABLES:
            _write(getattr(made, table), place / table / f"part-{number:05d}.parquet", number)
    return place


def _write(rows: pa.Table, path: Path, number: int) -> None:
    # Spark, Flink and DuckDB all read microseconds in 64 bits.
    pq.write_table(rows, path, version="2.6", coerce_timestamps="us")
    os.utime(path, (_OLDEST_S + number, _OLDEST_S + number))
