"""A set of slices, which people and files see as ranges: '0-63,96'."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Self

from springtide.errors import BadValue
from springtide.ids import SliceId

REMEMBERED = 4096
"""Sets whose text is known. The runs of a checkpoint count for the same few sets, epoch after epoch."""


class SliceSet(frozenset[SliceId]):
    """Some of a keyed operator's slices.

    >>> SliceSet.of([0, 1, 2, 5])
    SliceSet('0-2,5')
    >>> str(SliceSet.of(SliceSet.parse("0-63,96") - {63}))
    '0-62,96'
    """

    __slots__ = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Self:
        """These slices."""
        return numbers if isinstance(numbers, cls) else cls(map(SliceId, numbers))

    @classmethod
    def union_of(cls, sets: Iterable[Iterable[SliceId]]) -> Self:
        """The slices that are in any of these sets."""
        return cls(frozenset[SliceId]().union(*sets))

    @staticmethod
    def parse(text: str) -> "SliceSet":
        """The slices of some ranges; `BadValue` if `text` has none of that form."""
        return _parsed(text)

    def __str__(self) -> str:
        return _ranges(self)

    def __repr__(self) -> str:
        return f"SliceSet({_ranges(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """As ranges: references to blocks go to every task of an epoch."""
        return _parsed, (_ranges(self),)


NO_SLICES = SliceSet()


@lru_cache(REMEMBERED)
def _parsed(text: str) -> SliceSet:
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        try:
            numbers.update(range(int(first), int(last or first) + 1))
        except ValueError:
            raise BadValue(f"expected slices as ranges, for example '0-3,9', got {text!r}") from None
    return SliceSet.of(numbers)


@lru_cache(REMEMBERED)
def _ranges(slices: frozenset[SliceId]) -> str:
    ranges: list[list[int]] = []
    for number in sorted(slices):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
