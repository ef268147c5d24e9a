"""A join with what was known at the time: each left row gets the newest right row at or before its own time."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.buffer import Buffer, Mask, Side
from springtide.state.keys import Indices
from springtide.state.logic import Moment
from springtide.state.matching import Stamped, newest_before
from springtide.state.two_sides import Settled, TwoSided, next_expiry


@dataclass(frozen=True)
class AsOfLogic(TwoSided):
    """A left row waits until the watermark has passed it, as right rows for it may still come; then it goes, once.

    Of the right rows before the watermark the newest one of each key stays, and all later ones. When the watermark
    reaches one of these, those before it go.
    """

    outer: bool = True
    """Left rows for which there is no right one go on, with nulls."""
    tolerance_us: int | None = None
    """How old a right row may be; None if that does not matter."""

    def goes_on(self, side: Side) -> bool:
        return self.outer and side is self.left

    def meet(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask) -> pa.Table:
        return self.output.empty_table()

    def settle(self, keys: pa.Table, left: Buffer, right: Buffer, nulls: Mask, moment: Moment) -> Settled:
        over = nulls[left.group] | (left.times < moment.watermark_us)
        done = np.flatnonzero(over)
        found = self._found(left.stamped.take(done), right, nulls[left.group[done]])
        if not self.outer:
            done, found = done[found >= 0], found[found >= 0]
        picks = pa.array(found, mask=found < 0)
        answered = self.rows(keys, left.group[done], left.columns(done), right.columns(picks))
        of_use = self._of_use(right, moment)
        later = of_use & (right.times > moment.watermark_us)
        waiting = [(left.group[~over], left.times[~over] + 1), (right.group[later], right.times[later])]
        if self.tolerance_us is not None:
            waiting.append((right.group[of_use], right.times[of_use] + self.tolerance_us + 1))
        return Settled([answered], ~over, of_use, next_expiry(keys.num_rows, *waiting))

    def _found(self, left: Stamped, right: Buffer, nulls: Mask) -> Indices:
        """For each left row its right one; −1 if there is none, or none that is young enough."""
        found = newest_before(left, right.stamped)
        found[nulls] = -1
        if self.tolerance_us is not None and len(right):
            found[left.times - right.times[found] > self.tolerance_us] = -1
        return found

    def _of_use(self, right: Buffer, moment: Moment) -> Mask:
        """The right rows that a left row may still get: one that comes is no older than the watermark."""
        of_use: Mask = right.times > moment.watermark_us
        keys = np.unique(right.group)
        current = newest_before(Stamped(keys, np.full(len(keys), moment.watermark_us)), right.stamped)
        of_use[current[current >= 0]] = True
        if self.tolerance_us is not None:
            of_use &= right.times + self.tolerance_us >= moment.watermark_us
        return of_use
