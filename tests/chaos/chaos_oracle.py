"""What the sinks of the chaos app must hold, computed from the generator's rows in plain Python, and what they hold."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from chaos_app import DISORDER_S, EPOCH_ROWS, KEYS, START_S, WINDOW_S, spec

EPOCH_0 = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH = "epoch"
"""Of a row, beside its columns."""
SINKS = ("raw", "counts", "finals")
Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Contents:
    """By sink, its rows with their epoch, as a multiset: a duplicate counts."""

    raw: Rows
    counts: Rows
    finals: Rows

    def beyond(self, other: "Contents") -> dict[str, Rows]:
        """By sink: rows that it has, or has more often, than the other."""
        extra = {name: getattr(self, name) - getattr(other, name) for name in SINKS}
        return {name: rows for name, rows in extra.items() if rows}

    def epochs(self) -> set[int]:
        """The epochs with a row in any sink."""
        return {row[0] for name in SINKS for row in getattr(self, name)}

    def last_counts(self) -> dict[int, tuple[int, int]]:
        """By key: its count and total in the last epoch that had it."""
        return {key: (n, total) for _, key, n, total in sorted(self.counts)}


def published(root: Path) -> Contents:
    """What lies in the sinks, file by file."""
    return Contents(*(Counter(_rows(root / name)) for name in SINKS))


def _rows(sink: Path) -> list[tuple[Any, ...]]:
    found = []
    for file in sorted(sink.glob("epoch=*/*.parquet")):
        epoch = int(file.parent.name.removeprefix("epoch="))
        table = pq.ParquetFile(file).read()
        found += [(epoch, *row.values()) for row in table.to_pylist()]
    return found


def expected(epochs: int, keys: int = KEYS, quiet: Collection[int] | None = None) -> Contents:
    """The oracle: one pass over all rows with dictionaries, and no state, slices or Spark.

    Beside the epochs with rows there are `quiet` ones. If nothing is said of these there is one at the end, as an app
    that ends with its input has if it has windows to close.
    """
    quiet = (epochs,) if quiet is None else quiet
    rows = spec(epochs, keys).rows(0, epochs * EPOCH_ROWS, START_S).to_pylist()
    numbers = [epoch for epoch in range(epochs + len(quiet)) if epoch not in quiet]
    for row in rows:
        row[EPOCH] = numbers[row["id"] // EPOCH_ROWS]
    raw = Counter((row[EPOCH], *(value for name, value in row.items() if name != EPOCH)) for row in rows)
    return Contents(raw, _counts(rows), _finals(rows, epochs + len(quiet)))


def batch_counts(epochs: int) -> dict[int, tuple[int, int]]:
    """By key: its count and the total of its ids, over everything at once."""
    rows = spec(epochs).rows(0, epochs * EPOCH_ROWS, START_S).to_pylist()
    keys = {row["key"] for row in rows}
    ids = {key: [row["id"] for row in rows if row["key"] == key] for key in keys}
    return {key: (len(of_key), sum(of_key)) for key, of_key in ids.items()}


def _counts(rows: list[dict[str, Any]]) -> Rows:
    """One row for each key of an epoch, with its count so far: the last one of the epoch."""
    n: Counter[int] = Counter()
    total: Counter[int] = Counter()
    latest: dict[tuple[int, int], tuple[int, int]] = {}
    for row in rows:
        n[row["key"]] += 1
        total[row["key"]] += row["id"]
        latest[row[EPOCH], row["key"]] = (n[row["key"]], total[row["key"]])
    return Counter((*where, *values) for where, values in latest.items())


def _finals(rows: list[dict[str, Any]], epochs: int) -> Rows:
    """A window is published in the first epoch that starts with a watermark at or past its end."""
    size = timedelta(seconds=WINDOW_S)
    n: Counter[tuple[int, datetime]] = Counter()
    total: Counter[tuple[int, datetime]] = Counter()
    for row in rows:
        window = row["event_time"] - (row["event_time"] - EPOCH_0) % size
        n[row["key"], window] += 1
        total[row["key"], window] += row["id"]
    watermarks = _watermarks(rows, epochs)
    final: Rows = Counter()
    for (key, window), count in n.items():
        over = [epoch for epoch, watermark in enumerate(watermarks) if window + size <= watermark]
        if over:
            final[over[0], key, window, window + size, count, total[key, window], True] += 1
    return final


def _watermarks(rows: list[dict[str, Any]], epochs: int) -> list[datetime]:
    """By epoch: the newest time of all earlier ones, less what may still be late."""
    before = [[row["event_time"] for row in rows if row[EPOCH] < epoch] for epoch in range(epochs)]
    return [max(times, default=EPOCH_0) - timedelta(seconds=DISORDER_S) for times in before]
