"""A new worker's first task: fetch the state that it is to own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from springtide import faults
from springtide.blocks.block import BlockRef
from springtide.engine.worker.task_context import Storage, here, settle
from springtide.ids import WorkerId


@dataclass(frozen=True)
class FetchRuns:
    """Partition i fetches the runs of worker i, as far as that one lacks them, and says so.

    A task that went to another worker says nothing, and is sent again.
    """

    runs: Mapping[WorkerId, tuple[BlockRef, ...]]
    workers: tuple[WorkerId, ...]
    storage: Storage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                worker = self.workers[number]
                if here() == worker:
                    blocks = self.storage.open()
                    for run in self.runs.get(worker, ()):
                        blocks.open(run)
                    faults.fire("restore.fetched")
                    yield pa.RecordBatch.from_pydict({"record": [str(worker)]})
