"""Which rows of two sides belong together, by group and time: sorted and searched, with no loop over rows."""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from springtide.state.keys import Indices
from springtide.state.order import order_within

Times = npt.NDArray[np.int64]


class Stamped(NamedTuple):
    """Rows by their group and their time."""

    group: Indices
    times: Times

    def take(self, some: Indices) -> "Stamped":
        return Stamped(self.group[some], self.times[some])


class Pairs(NamedTuple):
    """Rows that belong together, by their numbers on either side."""

    left: Indices
    right: Indices


def pairs_between(left: Stamped, right: Stamped, lows: Times, highs: Times) -> Pairs:
    """The pairs of one group whose right time is from the left row's low to its high."""
    index = _Index(right)
    starts = index.first(left.group, lows, "left")
    ends = index.first(left.group, highs, "right")
    return _spread(starts, ends, index.order)


def pairs_of_group(left: Stamped, right: Stamped) -> Pairs:
    """All pairs of one group, whatever their times."""
    index = _Index(right._replace(times=np.zeros(len(right.times), np.int64)))
    nil = np.zeros(len(left.times), np.int64)
    return _spread(index.first(left.group, nil, "left"), index.first(left.group, nil, "right"), index.order)


def newest_before(left: Stamped, right: Stamped) -> Indices:
    """For each left row: the right row of its group that is the newest at or before its time; −1 if there is none.

    Of right rows with the same time the last one counts.
    """
    index = _Index(right)
    begins = index.first(left.group, np.full(len(left.times), np.iinfo(np.int64).min), "left")
    ends = index.first(left.group, left.times, "right")
    found = np.full(len(left.times), -1, np.int64)
    some = ends > begins
    found[some] = index.order[ends[some] - 1]
    return found


class _Index:
    """Rows in the order of group and time, and where a time would stand in its group."""

    def __init__(self, rows: Stamped) -> None:
        self.order = order_within(rows.group, rows.times)
        self._times = np.unique(rows.times)
        """Ranks take the place of times: group and rank fit one number, whatever the times are."""
        self._ranks = len(self._times) + 1
        ordered = rows.take(self.order)
        self._places = ordered.group * self._ranks + np.searchsorted(self._times, ordered.times)

    def first(self, group: Indices, times: Times, side: Literal["left", "right"]) -> Indices:
        """The place in the order from which on rows of a group are at, or with `right` after, a time."""
        places = group * self._ranks + np.searchsorted(self._times, times, side)
        return np.searchsorted(self._places, places, "left")


def _spread(starts: Indices, ends: Indices, order: Indices) -> Pairs:
    counts = np.maximum(ends - starts, 0)
    left = np.repeat(np.arange(len(starts)), counts)
    offsets = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(left, order[np.repeat(starts, counts) + offsets])
