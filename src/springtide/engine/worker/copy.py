"""Copying slices between workers: read where they are, carried by a shuffle, written where they will stand by."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from springtide import codec, faults
from springtide.blocks.block import PART, BlockRef, checksum
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.slice_set import SliceSet
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Opening, Parts
from springtide.engine.worker.parcel import pack, pieces
from springtide.engine.worker.task_context import Storage, here, partition, settle
from springtide.ids import InstanceId, SliceId, WorkerId
from springtide.state.layout import POSITION, Layout

TARGET, NUMBER, PAYLOAD, CHECKSUM, FAULTS = "target", "number", "payload", "checksum", "faults"
CARGO = StructType(
    [
        StructField(TARGET, IntegerType()),
        StructField(NUMBER, IntegerType()),
        StructField(PAYLOAD, BinaryType()),
        StructField(CHECKSUM, LongType()),
        StructField(FAULTS, StringType()),
    ]
)
"""Rows of an errand, with their checksum; or what was found wrong where they were to be read."""


@dataclass(frozen=True)
class Errand:
    """Some slices of a run, from one worker to another."""

    run: BlockRef
    slices: frozenset[SliceId]
    source: WorkerId
    target: WorkerId
    layout: Layout


@dataclass(frozen=True)
class Copied:
    """What copying has come to."""

    written: tuple[tuple[str, BlockRef], ...] = ()
    """Each part that was written, with the name of its run."""
    faults: tuple[Fault, ...] = ()
    """Blocks that were not as they should be where they were to be read."""

    def __add__(self, other: "Copied") -> "Copied":
        return Copied(self.written + other.written, self.faults + other.faults)


@dataclass(frozen=True)
class ReadSlices:
    """Partition i reads the errands of source i, there; a source that lacks a run reads the durable copy.

    Blocks are checked against the checksums that the driver knows, each time: what is copied gets a new one. A source
    that finds its own block missing or damaged says so. A task that has landed elsewhere, as its source is gone, reads
    nothing.
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
            target = self.targets.index(errand.target)
            opening = Opening(blocks, errand.layout, self.slices, parts, checked=True)
            try:
                runs = opening.runs([errand.run], errand.slices)
            except BlockCorrupt as error:
                opening.faults.append(Fault(errand.run, errand.source, "; ".join(error.tried)))
            else:
                for rows in pieces(in_order([run.current().rows for run in runs])):
                    yield _cargo(target, number, pack(rows))
            if opening.faults:
                yield _cargo(target, number, None, opening.faults)


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
            for number, payload, promised, found in zip(*map(batch.column, CARGO.names[1:]), strict=True):
                errand = self.errands[number.as_py()]
                if found.is_valid:
                    yield _record(Copied(faults=codec.loads(tuple[Fault, ...], found.as_py())))
                elif errand.target == here():
                    tables[errand.run.name].append((errand, _unpacked(payload.as_buffer(), promised.as_py(), errand)))
        for name, came in tables.items():
            run = came[0][0].run
            part = blocks.write(
                in_order([rows for _, rows in came]),
                operator=run.operator,
                epoch=run.epoch,
                instance=InstanceId(partition()),
                kind=PART,
                slices=SliceSet.union_of(errand.slices for errand, _ in came),
                durable=False,
            )
            faults.fire("copy.written")
            yield _record(Copied(((name, part),)))


def _cargo(target: int, number: int, payload: pa.Buffer | None, found: Sequence[Fault] = ()) -> pa.RecordBatch:
    columns = [
        pa.array([target], pa.int32()),
        pa.array([number], pa.int32()),
        pa.array([None if payload is None else payload.to_pybytes()], pa.binary()),
        pa.array([None if payload is None else checksum(payload)], pa.int64()),
        pa.array([codec.dumps(found) if found else None], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, CARGO.names)


def _unpacked(payload: pa.Buffer, promised: int, errand: Errand) -> pa.Table:
    if checksum(payload) != promised:
        run, tried = errand.run, ("rows on their way to a copy changed",)
        raise BlockCorrupt(run.name, run.operator, str(run.slices) or "-", run.epoch, tried)
    return pa.ipc.open_stream(payload).read_all()


def _record(copied: Copied) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"record": [codec.dumps(copied)]})


def in_order(tables: list[pa.Table]) -> pa.Table:
    """Tables as one, in order of position."""
    rows = pa.concat_tables(tables).combine_chunks()
    positions = rows.column(POSITION).to_numpy()
    if len(tables) == 1 or bool((positions[1:] >= positions[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(positions, kind="stable")))
