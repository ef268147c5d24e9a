"""What the topics of the app must hold, from the generator's rows in plain Python, and what a reader finds there."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from chaos_oracle import expected
from kafka_app import COUNTS, ROWS

from springtide.testing.topics import Record, consume

Bag = Counter[tuple[Any, ...]]


def check(servers: str, epochs: int) -> None:
    """A reader of what is committed sees the rows of this number of epochs, each once."""
    oracle = expected(epochs)
    _same(_found(servers, ROWS, _row), Counter(row[1:4] for row in oracle.raw.elements()), ROWS)
    _same(_found(servers, COUNTS, _count), Counter(row[1:] for row in oracle.counts.elements()), COUNTS)


def _same(found: Bag, wanted: Bag, topic: str) -> None:
    assert not found - wanted, f"{topic}: too many"
    assert not wanted - found, f"{topic}: too few"


def _found(servers: str, topic: str, of: Callable[[Record, dict[str, Any]], tuple[Any, ...]]) -> Bag:
    return Counter(of(record, json.loads(record.value or b"")) for record in consume(servers, topic))


def _row(record: Record, row: dict[str, Any]) -> tuple[Any, ...]:
    assert record.key == str(row["key"]).encode()
    return row["id"], row["key"], row["value"]


def _count(record: Record, row: dict[str, Any]) -> tuple[Any, ...]:
    assert record.key is None
    return row["key"], row["n"], row["total"]
