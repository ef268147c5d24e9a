"""What an aggregate is: an accumulator that combines in any order.

Rows come sorted by key; `starts` holds the first row of each key, and no key is empty. All
functions are columnar: they take whole columns and give one value a key. Columns are wide (`state/wide.py`), whatever
the plain types that an aggregate declares.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadType

Starts = npt.NDArray[np.int64]


class Aggregate(Protocol):
    """A commutative, associative summary of one column."""

    @property
    def column(self) -> str | None:
        """The input column, or None if only the number of rows matters."""

    def accumulator(self, kind: pa.DataType | None) -> list[pa.DataType]:
        """The types of the accumulator's columns for an input of this type."""

    def result(self, kind: pa.DataType | None) -> pa.DataType:
        """The type of the result."""

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        """Summarise raw values, key by key."""

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        """Merge accumulators, key by key."""

    def finish(self, parts: list[pa.Array]) -> pa.Array:
        """The results of accumulators."""


class Overflowed(Exception):
    """The result of one key does not fit; whoever knows the keys tells which one it is."""

    def __init__(self, group: int, room: str) -> None:
        super().__init__(group, room)
        self.group, self.room = group, room


class UnsupportedColumn(BadType):
    """An aggregate over a column of a type it can't summarise."""

    def __init__(self, aggregate: str, column: str, kind: str, expected: str) -> None:
        super().__init__(aggregate, column, kind, expected)
        self.aggregate, self.column, self.kind, self.expected = aggregate, column, kind, expected

    def __str__(self) -> str:
        return f"{self.aggregate} of column {self.column!r}: expected {self.expected}, got {self.kind}"


def require(condition: bool, aggregate: str, column: str | None, kind: object, expected: str) -> None:
    """Refuse a column type with an error that says what would do."""
    if not condition:
        raise UnsupportedColumn(aggregate, str(column), str(kind), expected)


def lengths(starts: Starts, rows: int) -> Starts:
    """How many rows each key has."""
    return np.diff(np.append(starts, rows))


def reduce_segments(ufunc: np.ufunc, values: pa.Array, starts: Starts, neutral: object, kind: pa.DataType) -> pa.Array:
    """Fold each key's non-null values with a NumPy ufunc; a key with none gives null."""
    if not len(starts):
        return pa.array([], kind)
    nulls = values.null_count
    filled = pc.fill_null(values, pa.scalar(neutral, values.type)) if nulls else values
    with np.errstate(invalid="ignore", over="ignore"):  # Infinity, and NaN for both of them: no reason to warn.
        folded = ufunc.reduceat(filled.to_numpy(zero_copy_only=False), starts)
    if not nulls:
        return pa.array(folded).cast(kind)
    valid = np.add.reduceat(pc.is_valid(values).to_numpy(zero_copy_only=False).astype(np.int64), starts)
    return pa.array(folded, mask=valid == 0).cast(kind)


def segment_lists(values: pa.Array, keep: npt.NDArray[np.int64], groups: Starts, keys: int) -> pa.Array:
    """One list a key of the kept values; `groups` numbers each kept value's key, ascending."""
    counts = np.bincount(groups, minlength=keys) if len(groups) else np.zeros(keys, np.int64)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values.take(pa.array(keep)))


def flatten(lists: pa.Array, starts: Starts) -> tuple[pa.Array, Starts]:
    """All values of lists and, for each, the number of its key."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    key_of_list = np.repeat(np.arange(len(starts)), lengths(starts, len(lists)))
    return lists.flatten(), np.repeat(key_of_list, sizes)


def sort_within(values: pa.Array, groups: Starts, *, descending: bool) -> Starts:
    """Row numbers ordered by key, then by value; NaN is the greatest, and nulls must be gone."""
    table = pa.table({"g": groups, "v": values})
    # Arrow puts NaN last in either direction, so descending is ascending read backwards.
    keys = [("g", "descending" if descending else "ascending"), ("v", "ascending")]
    order = pc.sort_indices(table, sort_keys=keys).to_numpy()
    return np.ascontiguousarray(order[::-1]) if descending else order
