"""Records for the tests with a broker."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from springtide.testing.topics import produce


def put(servers: str, topic: str, rows: Iterable[Mapping[str, Any]], **where: Any) -> None:
    """Write rows to a topic as JSON."""
    produce(servers, topic, [json.dumps(row) for row in rows], **where)


def orders(start: int, end: int) -> list[dict[str, Any]]:
    """Rows with five users and a number of their own."""
    return [{"user": f"u{n % 5}", "n": n} for n in range(start, end)]
