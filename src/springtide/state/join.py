"""A join of two streams: each row waits in the state of its key as long as a match can still come."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springtide.state.buffer import Buffer, Mask
from springtide.state.chain import FOREVER_US
from springtide.state.errors import BadUpdate
from springtide.state.keys import Indices
from springtide.state.logic import Moment
from springtide.state.matching import Pairs, pairs_between, pairs_of_group
from springtide.state.spans import Span
from springtide.state.two_sides import Settled, TwoSided, next_expiry

HOW = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}
"""By kind of join: whether rows of the left and of the right side that find no match go on."""

Where = Callable[[pa.Table], pa.ChunkedArray | pa.Array]
"""Which of the joined rows are a match, as a column of booleans; null counts as no."""


@dataclass(frozen=True)
class JoinLogic(TwoSided):
    """Rows of the left and the right side with the same key, within a span of event time if there is one.

    A pair is given out when its later row comes. A row that can find a match no more goes; if its side is preserved and
    it has found none, it is given out then, once.
    """

    span: Span | None = None
    where: Where | None = None

    def meet(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask) -> pa.Table:
        pairs = self._fresh_pairs(left, right, ~nulls[left.group])
        columns = left.columns(pairs.left), right.columns(pairs.right)
        joined = self.rows(keys, left.group[pairs.left], *columns, self._added(left, pairs.left))
        if self.where is not None:
            fits = _fitting(self.where, joined)
            joined, pairs = joined.filter(pa.array(fits)), Pairs(pairs.left[fits], pairs.right[fits])
        left.matched[pairs.left] = True
        right.matched[pairs.right] = True
        return joined

    def settle(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask, moment: Moment) -> Settled:
        left_ends_us, right_ends_us = self._ends(left, right)
        left_over = nulls[left.group] | (left_ends_us <= moment.watermark_us)
        right_over = nulls[right.group] | (right_ends_us <= moment.watermark_us)
        unmatched = []
        if left.side.preserved:
            alone = np.flatnonzero(left_over & ~left.matched)
            unmatched.append(self.rows(keys, left.group[alone], left.columns(alone), None, self._added(left, alone)))
        if right.side.preserved:
            alone = np.flatnonzero(right_over & ~right.matched)
            unmatched.append(self.rows(keys, right.group[alone], None, right.columns(alone), self._added(right, alone)))
        waiting = (
            (left.group[~left_over], left_ends_us[~left_over]),
            (right.group[~right_over], right_ends_us[~right_over]),
        )
        return Settled(unmatched, ~left_over, ~right_over, next_expiry(keys.num_rows, *waiting))

    def _ends(self, left: Buffer, right: Buffer) -> tuple[Indices, Indices]:
        """When each row can find a match no more, among rows that are not late."""
        if self.span is None:
            return np.full(len(left), FOREVER_US), np.full(len(right), FOREVER_US)
        return self.span.left_ends(left.times), self.span.right_ends(right.times)

    def _added(self, side: Buffer, rows: Indices) -> list[pa.Array]:
        """The columns that the span adds to joined rows; either side of a match tells the same."""
        return [] if self.span is None else self.span.columns(side.times[rows])

    def _fresh_pairs(self, left: Buffer, right: Buffer, matching: Mask) -> Pairs:
        """The pairs that have not been there before: of two rows that waited, it was told when the later one came."""
        mine, older = np.flatnonzero(left.fresh & matching), np.flatnonzero(~left.fresh & matching)
        first = self._pairs(left, mine, right, np.arange(len(right)))
        second = self._pairs(left, older, right, np.flatnonzero(right.fresh))
        return Pairs(np.append(first.left, second.left), np.append(first.right, second.right))

    def _pairs(self, left: Buffer, some: Indices, right: Buffer, others: Indices) -> Pairs:
        ours, theirs = left.stamped.take(some), right.stamped.take(others)
        if self.span is None:
            found = pairs_of_group(ours, theirs)
        else:
            found = pairs_between(ours, theirs, *self.span.meets(ours.times))
        return Pairs(some[found.left], others[found.right])


def _fitting(where: Where, joined: pa.Table) -> Mask:
    found = where(joined)
    if not isinstance(found, pa.Array | pa.ChunkedArray) or found.type != pa.bool_() or len(found) != len(joined):
        got = f"{found.type} of {len(found)}" if hasattr(found, "type") else type(found).__name__
        raise BadUpdate("where", f"a column of {len(joined)} booleans", got)
    fits: Mask = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return fits
