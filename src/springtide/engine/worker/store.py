"""Making state durable: each worker stores the runs that it alone has."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from springtide import codec, faults
from springtide.blocks.block import BlockRef
from springtide.blocks.errors import Unsound
from springtide.blocks.local import LocalBlocks
from springtide.engine.worker.fault import Fault, faults_of
from springtide.engine.worker.open_state import Parts
from springtide.engine.worker.task_context import Storage, here, settle
from springtide.ids import SliceId, WorkerId


@dataclass(frozen=True)
class Deposit:
    """Some slices of a run that a worker has and the durable store has not."""

    run: BlockRef
    slices: frozenset[SliceId]
    worker: WorkerId


@dataclass(frozen=True)
class StoreRuns:
    """Partition i stores the deposits of worker i, there, and tells what now stands for each."""

    deposits: tuple[Deposit, ...]
    workers: tuple[WorkerId, ...]
    storage: Storage
    parts: Mapping[WorkerId, Parts]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        blocks = self.storage.open()
        wanted = {self.workers[i] for batch in batches for i in batch.column(0).to_pylist()}
        for number, deposit in enumerate(self.deposits):
            if deposit.worker in wanted:
                stored = store(deposit, blocks, self.parts.get(WorkerId(here()), {}))
                faults.fire("deposit.written")
                yield pa.RecordBatch.from_pydict({"record": [codec.dumps([number, stored])]})


@dataclass(frozen=True)
class Stored:
    """Durable blocks that stand for slices of a deposit, and blocks that could not be used."""

    refs: tuple[BlockRef, ...] = ()
    faults: tuple[Fault, ...] = ()


def store(deposit: Deposit, blocks: LocalBlocks, parts: Parts) -> Stored:
    """Store a run, or what the worker holds of it; only bytes with the checksum that the driver knows."""
    run = deposit.run.only(deposit.slices)
    if run is None:
        return Stored()
    found: list[BlockRef] = []
    wrong: list[Fault] = []
    left = deposit.slices
    for block in (run, *parts.get(run.name, ())):
        useful = block.only(left)
        if useful is None:
            continue
        try:
            blocks.deposit(block)
        except Unsound as error:
            wrong += faults_of(block, blocks.worker, error)
            continue
        found.append(useful if block is run else replace(useful, expires_us=run.expires_us))
        left -= useful.slices
    return Stored(tuple(found), tuple(wrong))
