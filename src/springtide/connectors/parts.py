"""Rows in parts that depend on the rows alone."""

from collections.abc import Sequence


def part_of(key: Sequence[str], parts: int) -> str:
    """An SQL expression for the part of a row: by the hash of its key, the same however the epoch was computed."""
    identity = ", ".join(f"`{name}`" for name in key)
    return f"CAST(pmod(xxhash64(to_json(struct({identity}))), {parts}) AS INT)"
