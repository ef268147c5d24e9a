"""Rows brought together by key: sort by position, then cut where the key changes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.keys import Indices, same
from springtide.state.position import Positions

LONGEST_KEY = 200
"""Characters of a key that an error tells."""


@dataclass(frozen=True)
class Grouping:
    """An order of rows in which equal keys are neighbours, and the first row of each key in it."""

    order: Indices
    starts: Indices

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def firsts(self) -> Indices:
        """For each key, the original index of its first row."""
        return self.order[self.starts]

    @property
    def lasts(self) -> Indices:
        """For each key, the original index of its last row."""
        return self.order[np.append(self.starts[1:], len(self.order)) - 1] if len(self.starts) else self.order

    @property
    def sizes(self) -> Indices:
        """How many rows each key has."""
        return np.diff(np.append(self.starts, len(self.order)))

    @property
    def group_of_row(self) -> Indices:
        """For each ordered row, the number of its key."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)


def group(positions: Positions, keys: Sequence[pa.Array], *, presorted: bool = False) -> Grouping:
    """Group rows by key; keys come out by ascending position.

    With `presorted`, the rows are a few sorted runs one after the other; they are merged in linear
    time, and rows of one key keep the order in which they came.
    """
    order = np.argsort(positions, kind="stable" if presorted else "quicksort")
    ordered = positions[order]
    changes = ordered[1:] != ordered[:-1]
    twins = np.flatnonzero(~changes)
    if len(twins):
        left, right = pa.array(order[twins]), pa.array(order[twins + 1])
        strangers = twins[~same([k.take(left) for k in keys], [k.take(right) for k in keys])]
        if len(strangers):
            order, changes = _untangle(order, ordered, changes, strangers, keys)
    starts = np.append(0, np.flatnonzero(changes) + 1) if len(order) else np.empty(0, np.int64)
    return Grouping(order.astype(np.int64, copy=False), starts.astype(np.int64, copy=False))


def _untangle(
    order: Indices, ordered: Positions, changes: Indices, strangers: Indices, keys: Sequence[pa.Array]
) -> tuple[Indices, Indices]:
    """Different keys share a position (a hash collision): bring equal ones together, one by one."""
    order, changes = order.copy(), changes.copy()
    for position in np.unique(ordered[strangers]):
        first, end = np.searchsorted(ordered, position, "left"), np.searchsorted(ordered, position, "right")
        by_key: dict[tuple[object, ...], list[int]] = {}
        for row in order[first:end]:
            by_key.setdefault(key_tuple(keys, int(row)), []).append(int(row))
        at = first
        for rows in by_key.values():
            order[at : at + len(rows)] = rows
            if at > first:
                changes[at - 1] = True
            changes[at : at + len(rows) - 1] = False
            at += len(rows)
    return order, changes


def key_tuple(keys: Sequence[pa.Array], row: int) -> tuple[object, ...]:
    """One row's key as a value that compares by canonical equality (NaN equals NaN)."""
    # A time as its number: Python's own end with the year 9999.
    values = (k[row].value if pa.types.is_temporal(k.type) else k[row].as_py() for k in keys)
    return tuple("NaN" if isinstance(v, float) and v != v else (v,) for v in values)


def key_text(names: Sequence[str], keys: Sequence[pa.Array], row: int) -> str:
    """One row's key for people, on one line and not too long."""
    values = (k[row].cast(pa.string()) if pa.types.is_temporal(k.type) else k[row] for k in keys)
    text = json.dumps({name: value.as_py() for name, value in zip(names, values, strict=True)}, default=str)
    return text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}…"
