"""Making state durable: each worker stores the runs that it alone has."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from springtide import faults
from springtide.blocks.block import BlockRef, parse_slices
from springtide.blocks.local import LocalBlocks
from springtide.engine.worker.opening import Parts
from springtide.engine.worker.task import Storage, here, settle
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
                refs = [ref.to_json() for ref in store(deposit, blocks, self.parts.get(WorkerId(here()), {}))]
                faults.fire("deposit.written")
                yield pa.RecordBatch.from_pydict({"record": [json.dumps([number, refs])]})


def store(deposit: Deposit, blocks: LocalBlocks, parts: Parts) -> list[BlockRef]:
    """Store a run, or what the worker holds of it; the blocks that stand for its slices, as far as they are here."""
    run = deposit.run.only(deposit.slices)
    if run is None or blocks.deposit(run):
        return [] if run is None else [run]
    found, left = [], deposit.slices
    for part in parts.get(run.name, ()):
        useful = part.only(left)
        if useful is not None and blocks.deposit(part):
            found.append(replace(useful, expires_us=run.expires_us))
            left -= parse_slices(useful.slices)
    return found
