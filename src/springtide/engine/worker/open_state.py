"""Opening an instance's state on its worker: its own runs, a neighbour's that it holds parts of, or durable ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide.blocks.block import BlockRef, decode
from springtide.blocks.errors import Unsound
from springtide.blocks.local import LocalBlocks
from springtide.blocks.slice_set import SliceSet
from springtide.engine.worker.fault import Fault, faults_of
from springtide.ids import SliceId, WorkerId
from springtide.state.layout import POSITION, Layout
from springtide.state.logic import Moment
from springtide.state.position import slice_of, slice_starts
from springtide.state.run import Run, SliceMask
from springtide.state.update import Missed
from springtide.state.wide import widened

Parts = Mapping[str, tuple[BlockRef, ...]]
"""By the name of a run: the copies of some of its slices that a worker holds."""


@dataclass(frozen=True)
class Behind:
    """Slices that a worker takes over from an older state, and the epochs it has kept the rows of since."""

    worker: WorkerId
    slices: frozenset[SliceId]
    chain: tuple[BlockRef, ...]
    missed: tuple[tuple[Moment, BlockRef | None], ...]
    owed: bool = False
    """Nobody has seen these epochs yet: their output is still to come."""


class Missing(Exception):
    """Slices whose state is not on this worker."""

    def __init__(self, slices: frozenset[SliceId]) -> None:
        super().__init__(slices)
        self.slices = slices


class Opening:
    """Turns references into runs, and remembers what each run counts for.

    With `checked`, the bytes of every block are checked as it is opened, though this process may have done so before:
    for rows that are copied, as a copy gets a checksum of its own.
    """

    def __init__(
        self, blocks: LocalBlocks, layout: Layout, slices: int, parts: Parts, *, checked: bool = False
    ) -> None:
        self.blocks, self.layout, self.slices, self.parts = blocks, layout, slices, parts
        self.checked = checked
        self.faults: list[Fault] = []
        """Blocks that a check found missing or damaged."""
        self.durable = True
        self.durable_reads = 0
        self.counted: dict[str, tuple[str, SliceSet]] = {}
        """By the label of an opened run: the block it stands for, and the slices it counts for here."""

    def runs(self, chain: Iterable[BlockRef], wanted: frozenset[SliceId]) -> list[Run]:
        """The runs that hold some slices' state, oldest first; Missing if some are not here."""
        found: list[Run] = []
        missing: set[SliceId] = set()
        for ref in chain:
            needed = ref.slices & wanted
            if needed:
                try:
                    found += self._open(ref, needed)
                except Missing as error:
                    missing |= error.slices
        if missing:
            raise Missing(frozenset(missing))
        return found

    def missed(self, behind: Behind, mine: frozenset[SliceId]) -> list[Missed]:
        """The epochs that a state lacks, with the rows kept of them; Missing if a backup is gone."""
        wanted = behind.slices & mine
        found: list[Missed] = []
        for moment, ref in behind.missed:
            rows = None if ref is None else self.blocks.local(ref)
            if ref is not None and rows is None:
                # Rows that nobody has seen yet are in the durable store; backups are not.
                if not behind.owed:
                    raise Missing(wanted)
                self.durable_reads += 1
                rows = self.blocks.open(ref)
            found.append((moment, [] if rows is None else [self._only(rows, wanted)]))
        return found

    def parted(self, tables: list[pa.Table], stalled: frozenset[SliceId]) -> tuple[list[pa.Table], list[pa.Table]]:
        """Rows to process now, and those of stalled slices."""
        if not stalled:
            return tables, []
        others = frozenset(map(SliceId, range(self.slices))) - stalled
        return [self._only(rows, others) for rows in tables], [self._only(rows, stalled) for rows in tables]

    def census(self, tables: list[pa.Table]) -> tuple[tuple[int, int], ...]:
        """By slice: how many rows there are; slices without any are left out."""
        counts = np.zeros(self.slices, np.int64)
        for rows in tables:  # They come in the order of their positions.
            counts += np.diff(slice_starts(rows.column(POSITION).to_numpy(), self.slices))
        return tuple((int(number), int(counts[number])) for number in np.flatnonzero(counts))

    def _open(self, ref: BlockRef, needed: frozenset[SliceId]) -> list[Run]:
        table = self._here(ref)
        if table is not None:
            return [self._run(ref, table, ref.name, needed)]
        runs, left = [], set(needed)
        for part in self.parts.get(ref.name, ()):
            here = frozenset(left & part.slices)
            rows = self._here(part) if here else None
            if rows is not None:
                runs.append(self._run(ref, rows, part.name, here))
                left -= here
        if not left:
            return runs
        if not self.durable:
            raise Missing(frozenset(left))
        self.durable_reads += 1
        return [self._run(ref, self.blocks.open(ref, checked=self.checked), ref.name, needed)]

    def _here(self, ref: BlockRef) -> pa.Table | None:
        """A block's table if this worker has it, with the right bytes."""
        if not self.checked:
            return self.blocks.local(ref)
        try:
            return decode(self.blocks.sound(ref))
        except Unsound as error:
            self.faults += faults_of(ref, self.blocks.worker, error)
            return None

    def _run(self, ref: BlockRef, table: pa.Table, name: str, counted: frozenset[SliceId]) -> Run:
        label = f"{name}#{len(self.counted)}"
        self.counted[label] = (ref.name, SliceSet.of(counted))
        whole = name == ref.name and not ref.partial and counted == ref.slices
        mask = None if whole else self._mask(counted)
        return Run(widened(table), self.layout, self.slices, label, mask, ref.expires_us)

    def _only(self, rows: pa.Table, wanted: frozenset[SliceId]) -> pa.Table:
        return rows.filter(pa.array(self._mask(wanted)[slice_of(rows.column(POSITION).to_numpy(), self.slices)]))

    def _mask(self, wanted: frozenset[SliceId]) -> SliceMask:
        mask = np.zeros(self.slices, np.bool_)
        mask[list(wanted)] = True
        return mask
