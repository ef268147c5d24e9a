"""Rows for every operator over several epochs, and what plain Python makes of them."""

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from spark_kit import Bag, Row, bag

from springtide.metrics.report import EpochReport

RunApp = Callable[..., list[EpochReport]]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("v", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
DDL = "id BIGINT, k STRING, n BIGINT, v DOUBLE, at TIMESTAMP"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EPOCHS = 4
EPOCH_ROWS = 120


def made(seed: int) -> list[list[Row]]:
    """Rows by epoch, with nulls everywhere and event times out of order."""
    random_ = random.Random(seed)

    def row(epoch: int, number: int) -> Row:
        second = epoch * 20 + random_.uniform(-15, 20)
        return {
            "id": epoch * EPOCH_ROWS + number,
            "k": random_.choice([None, "", *"abcdefgh"]),
            "n": random_.choice([None, *range(-3, 12)]),
            "v": random_.choice([None, *(x / 4 for x in range(-8, 40))]),
            "at": None if random_.random() < 0.02 else NOON + timedelta(seconds=round(second, 3)),
        }

    return [[row(epoch, number) for number in range(EPOCH_ROWS)] for epoch in range(EPOCHS)]


def grouped(rows: list[Row], column: str = "k") -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def so_far(epochs: list[list[Row]], of: Callable[[Any, list[Row]], Row]) -> dict[int, Bag]:
    """By epoch: a row for each key that came, made from all its rows up to then."""
    seen: list[Row] = []
    result = {}
    for epoch, rows in enumerate(epochs):
        seen = seen + rows
        keys = {row["k"] for row in rows}
        result[epoch] = bag(of(key, of_key) for key, of_key in grouped(seen).items() if key in keys)
    return result


def rows_of(rows: Bag) -> list[Row]:
    return [dict(row) for row in rows.elements()]
