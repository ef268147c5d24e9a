"""A chain: the runs that together hold an instance's state, oldest first.

A key's state is in the newest run that has it. A run never outgrows what lies on top of it by more
than `RATIO`, so a chain of n keys has about log2(n / rows an epoch) runs and an epoch rewrites, on
average, a small multiple of what it changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.state.group import key_tuple
from springtide.state.keys import Indices, same
from springtide.state.layout import Layout
from springtide.state.position import Positions
from springtide.state.run import Run, merge

RATIO = 2
"""A run is merged with those above it once they hold more than 1/RATIO of its rows."""
FOREVER_US = 1 << 62
"""After every event time: the expiry of a key that stays."""
LOOKED_UP = 1024
"""Keys that are looked up at first, when the next one to expire is wanted."""


@dataclass(frozen=True)
class Found:
    """Where the keys asked for are: a run number (−1: nowhere) and a row in it."""

    run: Indices
    row: Indices

    @property
    def known(self) -> np.ndarray:
        return self.run >= 0


class Chain:
    """Reads an instance's state, and folds changes into as few runs as pays."""

    def __init__(self, runs: Sequence[Run], layout: Layout) -> None:
        self.runs = tuple(runs)
        self.layout = layout

    def find(self, positions: Positions, keys: Sequence[pa.Array]) -> Found:
        """Look keys up, newest run first; tombstones count as not found."""
        where = np.full(len(positions), -1, np.int64)
        row = np.zeros(len(positions), np.int64)
        pending = np.arange(len(positions))
        for number in range(len(self.runs) - 1, -1, -1):
            if not len(pending):
                break
            run = self.runs[number]
            here, rows = _find_in(run, positions, keys, pending)
            where[here], row[here] = number, rows
            if run.dead is not None:
                where[here[run.dead[rows]]] = -1
            unseen = np.ones(len(positions), np.bool_)
            unseen[here] = False
            pending = pending[unseen[pending]]
        return Found(where, row)

    def take(self, found: Found) -> pa.Table:
        """The state rows of the known keys, in the order they were asked for."""
        known = np.flatnonzero(found.known)
        parts: list[pa.Table] = []
        origin: list[Indices] = []
        for number, run in enumerate(self.runs):
            mine = known[found.run[known] == number]
            if len(mine):
                parts.append(run.rows.take(pa.array(found.row[mine])))
                origin.append(mine)
        if not parts:
            return self.layout.schema.empty_table()
        rows = pa.concat_tables(parts)
        if len(parts) == 1:
            return rows
        return rows.take(pa.array(np.argsort(np.concatenate(origin), kind="stable")))

    def expired(self, after_us: int, until_us: int) -> pa.Table:
        """The current rows of every key whose expiry lies in (after, until]."""
        candidates = [run.rows.take(pa.array(run.expiring(after_us, until_us))) for run in self.runs]
        candidates = [rows for rows in candidates if rows.num_rows]
        if not candidates:
            return self.layout.schema.empty_table()
        newest = merge([Run(rows, self.layout, 1) for rows in candidates], whole=False)
        run = Run(newest, self.layout, 1)
        rows = self.take(self.find(run.positions, run.keys))
        kept = Run(rows, self.layout, 1).expiring(after_us, until_us)
        return rows.take(pa.array(kept))

    def next_expiry_us(self, after_us: int) -> int:
        """The earliest expiry of a key after a time; FOREVER_US if none is to come.

        A run may hold keys that have changed since, so the earliest ones are looked up, a few at a time.
        """
        if not self.layout.expires:
            return FOREVER_US
        found = [run.expiring(after_us, FOREVER_US - 1) for run in self.runs]
        number = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
        row = np.concatenate([np.empty(0, np.int64), *found])
        expires = np.concatenate(
            [np.empty(0, np.int64), *(run.expires[rows] for run, rows in zip(self.runs, found, strict=True))]
        )
        looked_up = 0
        while looked_up < len(expires):
            many = min(max(LOOKED_UP, 8 * looked_up), len(expires))
            first = np.argpartition(expires, many - 1)[:many] if many < len(expires) else np.arange(many)
            live = [self._live(run, row[first[number[first] == run]]) for run in range(len(self.runs))]
            times = [self.runs[run].expires[rows] for run, rows in enumerate(live) if len(rows)]
            if times:
                return int(min(each.min() for each in times))
            looked_up = many
        return FOREVER_US

    def _live(self, number: int, rows: Indices) -> Indices:
        """Of some rows of a run, those that no newer run has changed or removed."""
        run = self.runs[number]
        picks = pa.array(rows)
        found = self.find(run.positions[rows], [key.take(picks) for key in run.keys])
        live: Indices = rows[(found.run == number) & (found.row == rows)]
        return live

    def fold(self, changes: pa.Table, least: int = 0) -> tuple[pa.Table, tuple[Run, ...]]:
        """Put changed rows, sorted by position, on top: the new run, and the runs it replaces.

        The `least` newest runs are replaced however large they are.
        """
        replaced = least
        total = changes.num_rows + sum(len(run) for run in self.runs[len(self.runs) - least :])
        while replaced < len(self.runs) and len(self.runs[-1 - replaced]) <= RATIO * total:
            total += len(self.runs[-1 - replaced])
            replaced += 1
        whole = replaced == len(self.runs)
        gone = self.runs[len(self.runs) - replaced :]
        new = Run(changes, self.layout, 1)
        if not gone and not (whole and self.layout.has_tombstones):
            return changes, gone
        return merge([*gone, new], whole=whole), gone


def _find_in(run: Run, positions: Positions, keys: Sequence[pa.Array], pending: Indices) -> tuple[Indices, Indices]:
    """Of the pending keys, those in this run, and their rows."""
    if not len(run):
        return pending[:0], pending[:0]
    wanted = positions[pending]
    at = np.searchsorted(run.positions, wanted)
    inside = np.minimum(at, len(run) - 1)
    hit = (run.positions[inside] == wanted) & run.counts(wanted)
    here, rows = pending[hit], inside[hit]
    left, right = pa.array(here), pa.array(rows)
    equal = same([k.take(left) for k in keys], [k.take(right) for k in run.keys])
    if equal.all():
        return here, rows
    others = [(i, r) for i, r in zip(here[~equal], rows[~equal], strict=True)]
    resolved = [(i, _among_colliding(run, keys, int(i), int(r))) for i, r in others]
    more = [(i, r) for i, r in resolved if r is not None]
    return (
        np.append(here[equal], [i for i, _ in more]).astype(np.int64),
        np.append(rows[equal], [r for _, r in more]).astype(np.int64),
    )


def _among_colliding(run: Run, keys: Sequence[pa.Array], index: int, row: int) -> int | None:
    """Different keys share this position: walk on until the right one, or the next position."""
    wanted = key_tuple(keys, index)
    position = run.positions[row]
    while row < len(run) and run.positions[row] == position:
        if key_tuple(run.keys, row) == wanted:
            return row
        row += 1
    return None
