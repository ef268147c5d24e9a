"""Columns of every type that has an order, and that order in plain Python."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [-(2**63), -1, 0, 3, 2**63 - 1]),
    "small": (pa.int8(), [-128, 0, 127]),
    "unsigned": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "f": (pa.float64(), [-math.inf, -2.5, 0.0, 1e-300, 3.0, math.inf, math.nan]),
    "s": (pa.string(), ["", "a", "aa", "ä", "B"]),
    "raw": (pa.binary(), [b"", b"a", b"\xff"]),
    "at": (pa.timestamp("us", "UTC"), [NOON + timedelta(microseconds=us) for us in (-(10**15), 0, 1)]),
    "day": (pa.date32(), [NOON.date(), NOON.date() + timedelta(1)]),
    "money": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("12.25")]),
    "flag": (pa.bool_(), [False, True]),
}
ROWS = pa.schema({"k": pa.int64()} | {name: kind for name, (kind, _) in KINDS.items()})


def compare(left: Any, right: Any) -> int:
    """By value: NaN is the greatest, and null comes before all."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if left != left or right != right:
        return (left != left) - (right != right)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return (left > right) - (left < right)
