"""Copying slices between workers: read where they are, carried by a shuffle, written where they will stand by."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from springtide import faults
from springtide.blocks.block import PART, BlockRef, format_slices
from springtide.engine.worker.opening import Opening, Parts
from springtide.engine.worker.parcel import pack
from springtide.engine.worker.task import Storage, here, partition, settle
from springtide.ids import InstanceId, SliceId, WorkerId
from springtide.state.layout import POSITION, Layout

TARGET, NUMBER, PAYLOAD = "target", "number", "payload"
CARGO = StructType(
    [StructField(TARGET, IntegerType()), StructField(NUMBER, IntegerType()), StructField(PAYLOAD, BinaryType())]
)


@dataclass(frozen=True)
class Errand:
    """Some slices of a run, from one worker to another."""

    run: BlockRef
    slices: frozenset[SliceId]
    source: WorkerId
    target: WorkerId
    layout: Layout


@dataclass(frozen=True)
class ReadSlices:
    """Partition i reads the errands of source i, there; a source that lacks a run reads the durable copy.

    A task that has landed elsewhere, as its source is gone, reads nothing.
    """

    errands: tuple[Errand, ...]
    sources: tuple[WorkerId, ...]
    targets: tuple[WorkerId, ...]
    slices: int
    storage: Storage
    parts: Mapping[WorkerId, Parts]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        blocks = self.storage.open()
        faults.fire("copy.read")
        parts = self.parts.get(WorkerId(here()), {})
        wanted = {self.sources[i] for batch in batches for i in batch.column(0).to_pylist()} & {here()}
        for number, errand in enumerate(self.errands):
            if errand.source not in wanted:
                continue
            runs = Opening(blocks, errand.layout, self.slices, parts).runs([errand.run], errand.slices)
            rows = in_order([run.current().rows for run in runs])
            columns = [
                pa.array([self.targets.index(errand.target)], pa.int32()),
                pa.array([number], pa.int32()),
                pa.array([pack(rows).to_pybytes()], pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, CARGO.names)


@dataclass(frozen=True)
class WriteParts:
    """Partition i writes on target i what has come for it: one part a run."""

    errands: tuple[Errand, ...]
    storage: Storage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        blocks = self.storage.open()
        tables: dict[str, list[tuple[Errand, pa.Table]]] = defaultdict(list)
        for batch in batches:
            for number, payload in zip(batch.column(NUMBER).to_pylist(), batch.column(PAYLOAD), strict=True):
                errand = self.errands[number]
                if errand.target == here():
                    tables[errand.run.name].append((errand, pa.ipc.open_stream(payload.as_buffer()).read_all()))
        for name, came in tables.items():
            run = came[0][0].run
            slices = frozenset().union(*(errand.slices for errand, _ in came))
            part = blocks.write(
                in_order([rows for _, rows in came]), operator=run.operator, epoch=run.epoch,
                instance=InstanceId(partition()), kind=PART, slices=format_slices(slices), durable=False,
            )  # fmt: skip
            faults.fire("copy.written")
            yield pa.RecordBatch.from_pydict({"record": [json.dumps([name, part.to_json()])]})


def in_order(tables: list[pa.Table]) -> pa.Table:
    """Tables as one, in order of position."""
    rows = pa.concat_tables(tables).combine_chunks()
    positions = rows.column(POSITION).to_numpy()
    if len(tables) == 1 or bool((positions[1:] >= positions[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(positions, kind="stable")))
