"""Input cut into epochs as a test says, and rows compared as multisets."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from springtide import sources
from springtide.connectors.sources import Files, Generator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Bag = Counter[tuple[Any, ...]]


def bag(rows: Iterable[Mapping[str, Any]]) -> Bag:
    """Rows with their number, whatever their order; never distinct(), which hides duplicates."""
    return Counter(tuple((name, frozen(row[name])) for name in sorted(row)) for row in rows)


def frozen(value: Any) -> Any:
    """A value that compares as keys do: NaN equals NaN, -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, frozen(inner)) for name, inner in value.items())
    return tuple(frozen(v) for v in value) if isinstance(value, list) else value


def by_epoch(epochs: Mapping[int, pa.Table]) -> dict[int, Bag]:
    """What a memory sink holds, epoch by epoch; epochs without rows left out."""
    return {epoch: bag(table.to_pylist()) for epoch, table in epochs.items() if table.num_rows}


def parquet_epochs(directory: Path, epochs: Sequence[Sequence[Row]], schema: pa.Schema, ddl: str) -> Files:
    """A source that gives each list of rows in an epoch of its own, in their order."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(epochs):
        path = directory / f"{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
        in_order(path, number)
    return sources.files(str(directory), format="parquet", schema=ddl, maxFilesPerTrigger="1")


def in_order(path: Path, number: int) -> None:
    """Spark reads the file that is older by its time stamp first."""
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def generator(epochs: int) -> Generator:
    """Rows for a number of epochs, 40 each."""
    return sources.generator(100, limit=40 * epochs, keys=7, start_s=1_700_000_000.0, max_rows_per_epoch=40)


def alive(spark: "SparkSession") -> bool:
    """A user's session is never stopped."""
    return spark.range(3).count() == 3
