"""A run: state rows sorted by position, and the merge of several runs into one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.state.group import group
from springtide.state.layout import DEAD, EXPIRES, POSITION, Layout, one_array
from springtide.state.position import Positions, slice_of

SliceMask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Run:
    """Sorted state rows, usually a memory-mapped block.

    `live` tells for which slices this run still counts; None means for all of them. Rows of other
    slices are history: their slice has moved or was compacted elsewhere.
    """

    rows: pa.Table
    layout: Layout
    slices: int
    name: str = ""
    live: SliceMask | None = field(default=None, compare=False)
    expires_us: tuple[int, int] | None = None
    """The earliest and the latest expiry in it, if known: it is not searched in vain."""

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def positions(self) -> Positions:
        values: Positions = one_array(self.rows.column(POSITION)).to_numpy()
        return values

    @cached_property
    def keys(self) -> list[pa.Array]:
        return self.layout.keys_of(self.rows)

    @cached_property
    def expires(self) -> npt.NDArray[np.int64]:
        """When each row expires, in microseconds."""
        values: npt.NDArray[np.int64] = self.rows.column(EXPIRES).to_numpy()
        return values

    @cached_property
    def dead(self) -> npt.NDArray[np.bool_] | None:
        if not self.layout.has_tombstones:
            return None
        dead: npt.NDArray[np.bool_] = self.rows.column(DEAD).to_numpy()
        return dead if dead.any() else None

    def counts(self, positions: Positions) -> npt.NDArray[np.bool_]:
        """Which positions lie in slices this run still counts for."""
        if self.live is None:
            return np.ones(len(positions), np.bool_)
        return self.live[slice_of(positions, self.slices)]

    def expiring(self, after_us: int, until_us: int) -> npt.NDArray[np.int64]:
        """Rows whose expiry lies in (after, until]."""
        if self.expires_us is not None and (self.expires_us[0] > until_us or self.expires_us[1] <= after_us):
            return np.empty(0, np.int64)
        rows = np.flatnonzero((self.expires > after_us) & (self.expires <= until_us))
        return rows if self.live is None else rows[self.counts(self.positions[rows])]

    def current(self) -> "Run":
        """This run without the rows of slices it no longer counts for."""
        if self.live is None:
            return self
        kept = np.flatnonzero(self.counts(self.positions))
        if len(kept) == len(self):
            return self
        return Run(self.rows.take(pa.array(kept)), self.layout, self.slices)


def merge(runs: Sequence[Run], *, whole: bool) -> pa.Table:
    """One sorted table of the newest row of every key; `runs` come oldest first.

    `whole` says that nothing older than these runs exists, so tombstones have done their work.
    """
    layout = runs[0].layout
    rows = pa.concat_tables([run.current().rows for run in runs]).combine_chunks()
    kept = group(rows.column(POSITION).to_numpy(), layout.keys_of(rows), presorted=True).lasts
    if whole and layout.has_tombstones:
        kept = kept[~rows.column(DEAD).to_numpy()[kept]]
    return rows.take(pa.array(kept))
