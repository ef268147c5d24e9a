"""The order of rows by several columns at once: each column becomes whole numbers in the order of its values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.state.aggregates.base import Starts, lengths
from springtide.state.keys import canonical
from springtide.state.order import order_within

Numbers = npt.NDArray[np.int64]
Place = Callable[[Starts], Numbers]
"""Of rows with these numbers: ascending numbers in their order."""
ORDERED = "a type with an order (numbers, strings, times)"
"""What an aggregate that orders values tells of one that it cannot."""
_SMALLEST_FIRST = "-"


@dataclass(frozen=True)
class By:
    """A column that rows are ordered by."""

    column: str
    smallest_first: bool = False


def order_by(aggregate: str, by: object) -> tuple[By, ...]:
    """`"price"` is largest first, `"-price"` smallest first, a tuple is of several; BadValue if it is none of that."""
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, tuple | list) or not names or not all(isinstance(n, str) and n.strip("-") for n in names):
        raise BadValue(f"{aggregate} by={by!r}: expected a column name such as 'price' or '-price', or a tuple of some")
    found = tuple(By(n.removeprefix(_SMALLEST_FIRST), n.startswith(_SMALLEST_FIRST)) for n in names)
    if len({one.column for one in found}) < len(found):
        raise BadValue(f"{aggregate} by={by!r}: expected each column once")
    return found


def has_order(kind: pa.DataType) -> bool:
    """Whether values of a type can be put in order."""
    return not pa.types.is_nested(kind) and not pa.types.is_null(kind)


def largest_first(values: pa.Array) -> Numbers:
    """Ascending numbers for descending values; nulls come last."""
    numbers = ~smallest_first(values)
    if not values.null_count:
        return numbers
    last = pc.is_null(values).to_numpy(zero_copy_only=False)
    # One for each place: the greatest number may be that of a value.
    places = np.unique(numbers, return_inverse=True)[1]
    return np.where(last, len(numbers), places)


def smallest_first(values: pa.Array) -> Numbers:
    """Ascending numbers for ascending values; NaN is the greatest value, and nulls have any number."""
    kind = values.type
    if pa.types.is_floating(kind):
        bits = _filled(canonical(values).cast(pa.float64())).view(np.int64)
        return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    if pa.types.is_uint64(kind):
        # By turning the highest bit, the least number becomes the least signed one.
        return np.bitwise_xor(_filled(values).view(np.int64), np.iinfo(np.int64).min)
    if pa.types.is_temporal(kind):
        return smallest_first(values.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pa.types.is_integer(kind):
        return _filled(values).astype(np.int64, copy=False)
    return pc.rank(values, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def best_rows(groups: Starts, places: Iterable[Place], most: int) -> tuple[Starts, Starts]:
    """Numbers of the rows that fewer than `most` others of their group precede, best first, and a number for each rank.

    `groups` ascends. Rows that are equal in all places have one rank; ranks ascend. The places of rows are only asked
    for as long as there are rows that are equal in those before.
    """
    order, ranks = np.arange(len(groups)), groups
    for place in places:
        tied = _with_equals(ranks)
        if not tied.any():
            break
        rows = order[tied]
        numbers, within = place(rows), ranks[tied]
        if most == 1:
            # What precedes all others is found without a sort.
            starts = _begins(within)
            least = np.repeat(np.minimum.reduceat(numbers, starts), lengths(starts, len(within)))
            kept = np.ones(len(order), np.bool_)
            kept[tied] = numbers == least
            order, ranks = order[kept], ranks[kept]
            continue
        by_number = order_within(within, numbers)
        order[tied], numbers = rows[by_number], numbers[by_number]
        fresh = ranks != np.roll(ranks, 1)
        fresh[:1] = True
        fresh[tied] |= np.append(True, numbers[1:] != numbers[:-1])
        better = place_in_group(groups[order])[place_of_last(fresh)]
        order, ranks = order[better < most], np.cumsum(fresh)[better < most]
    return order, ranks


def place_in_group(ordered: Starts) -> Starts:
    """For rows in the order of their groups: how many of its group come before each."""
    begins = np.ones(len(ordered), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    return np.arange(len(ordered)) - place_of_last(begins)


def place_of_last(begins: npt.NDArray[np.bool_]) -> Starts:
    """For each row, the newest one at or before it at which something begins."""
    return np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))


def _with_equals(ranks: Starts) -> npt.NDArray[np.bool_]:
    """Which rows have a neighbour of the same rank."""
    found = np.zeros(len(ranks), np.bool_)
    found[1:] = ranks[1:] == ranks[:-1]
    found[:-1] |= found[1:]
    return found


def _begins(ordered: Starts) -> Starts:
    """The first row of each group."""
    return np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def _filled(values: pa.Array) -> npt.NDArray[np.generic]:
    filled = pc.fill_null(values, 0) if values.null_count else values
    return filled.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
