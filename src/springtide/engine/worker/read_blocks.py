"""Rows that keyed steps have written, read where they lie."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from springtide.blocks.block import BlockRef
from springtide.engine.worker.task_context import Storage


@dataclass(frozen=True)
class ReadBlocks:
    """The rows of the parts whose numbers come in.

    A part goes by that number and not by the task's: below a union or a coalesce the two differ.
    """

    parts: tuple[tuple[BlockRef, ...], ...]
    """Each read by one task, block after block."""
    rows: pa.Schema
    storage: Storage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blocks = self.storage.open()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for ref in self.parts[number]:
                    yield from blocks.open(ref).select(self.rows.names).cast(self.rows).to_batches()
