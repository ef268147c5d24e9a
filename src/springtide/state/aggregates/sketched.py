"""Aggregates that keep the few values of a key as they are, and many of them as a sketch.

Few values are exact, and are summarised for all keys at once. Only keys with many values are gone through one by one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.aggregates.base import Starts, flatten, lengths, segment_lists

Mask = npt.NDArray[np.bool_]
_SKETCH = pa.large_binary()


class Sketched(ABC):
    """The accumulators are a list of values and a sketch; one of them is empty."""

    @property
    @abstractmethod
    def few(self) -> int:
        """How many values are kept as they are."""

    @abstractmethod
    def lists(self, values: pa.Array, groups: Starts, keys: int) -> pa.Array:
        """One list a key of the values that count; `groups` numbers each value's key."""

    @abstractmethod
    def readable(self, values: pa.Array) -> Sequence[Any] | npt.NDArray[Any]:
        """Values as the sketch takes them."""

    @abstractmethod
    def made(self, sketches: Sequence[bytes], values: Any) -> bytes:
        """One sketch of some sketches and of more values."""

    def partial(self, values: pa.Array | None, rows: int, starts: Starts) -> list[pa.Array]:
        assert values is not None
        groups = np.repeat(np.arange(len(starts)), lengths(starts, rows))
        return self._settled(
            self.lists(values, groups, len(starts)), pa.nulls(len(starts), _SKETCH), np.arange(len(starts))
        )

    def combine(self, parts: list[pa.Array], starts: Starts) -> list[pa.Array]:
        values, groups = flatten(parts[0], starts)
        return self._settled(self.lists(values, groups, len(starts)), parts[1], starts)

    def _settled(self, lists: pa.Array, sketches: pa.Array, starts: Starts) -> list[pa.Array]:
        """Key by key: the values if they are few and there is no sketch, else one sketch of all."""
        held = np.flatnonzero(is_sketched(sketches))
        key_of_held = np.searchsorted(starts, held, "right") - 1
        sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        many = sizes > self.few
        many[key_of_held] = True
        if not many.any():
            return [lists, pa.nulls(len(starts), _SKETCH)]
        values, key_of_value = lists.flatten(), np.repeat(np.arange(len(sizes)), sizes)
        added = self.readable(values.filter(pa.array(many[key_of_value])))
        ends = np.cumsum(sizes[many])
        old, keys = sketches.take(pa.array(held)).to_pylist(), np.flatnonzero(many)
        spans = zip(
            np.searchsorted(key_of_held, keys, "left"),
            np.searchsorted(key_of_held, keys, "right"),
            ends - sizes[many],
            ends,
            strict=True,
        )
        made = [self.made(old[a:b], added[c:d]) for a, b, c, d in spans]
        kept = np.flatnonzero(~many[key_of_value])
        few = segment_lists(values, kept, key_of_value[kept], len(sizes))
        return [few, pa.array(made, _SKETCH).take(pa.array(np.cumsum(many) - 1, mask=~many))]


def is_sketched(sketches: pa.Array) -> Mask:
    """By key: whether there is a sketch."""
    return pc.is_valid(sketches).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
