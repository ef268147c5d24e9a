"""What runs on workers: rows on their way to their instance, the update, and reading blocks back.

Everything here closes over plain values and the user's own functions; Spark carries it to the
workers. The rows of an epoch cross the shuffle as Arrow tables, one binary value for each instance
and reading task: Spark moves bytes, not rows.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from springtide import faults
from springtide.blocks.block import OUTPUT, RUN, BlockRef, format_slices, parse_slices
from springtide.blocks.local import LocalBlocks
from springtide.blocks.store import open_store
from springtide.dataflow.errors import StepFailed
from springtide.engine.record import CommitRecord, MapStats
from springtide.engine.stopwatch import Stopwatch
from springtide.ids import Epoch, InstanceId
from springtide.metrics.report import InstanceReport
from springtide.state.chain import Chain
from springtide.state.layout import EXPIRES, POSITION, Layout
from springtide.state.logic import Arrival, Logic, Moment, canonical_keys
from springtide.state.position import positions, slice_starts
from springtide.state.run import Run
from springtide.state.update import update

HASH = "$hash"
PARCEL = "instance int, stats string, payload binary"
CHUNK_ROWS = 1_000_000
CHUNK_BYTES = 128 << 20
"""Rows are prepared this much at a time, so that a long partition does not fill the memory."""

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Storage:
    """Where blocks lie: a directory on the worker, and the durable store's URL."""

    local: str
    durable: str

    def open(self) -> LocalBlocks:
        return LocalBlocks(Path(self.local), open_store(self.durable))


@dataclass(frozen=True)
class Prepare:
    """Turn a partition's rows into one parcel an instance."""

    step: str
    logic: Logic
    key: tuple[str, ...]
    rows: pa.Schema
    instance_of: tuple[InstanceId, ...]
    moment: Moment

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        stats = MapStats()
        for chunk in _chunks(batches):
            start = time.perf_counter()
            arrival = self._arrive(chunk)
            parcels = list(self._parcels(arrival.rows))
            stats += MapStats(
                arrival.rows_in, arrival.late_rows, arrival.malformed_rows, arrival.newest_us,
                time.perf_counter() - start,
            )  # fmt: skip
            yield from parcels
        yield _parcel(0, stats.to_json(), None)

    def _arrive(self, chunk: pa.Table) -> Arrival:
        with _naming(self.step, "preparing its rows"):
            hashes = chunk.column(HASH).to_numpy()
            rows = chunk.select(self.rows.names).cast(self.rows)
            where = positions(hashes, len(self.instance_of))
            return self.logic.arrive(where, canonical_keys(rows, self.key), rows.select(self.logic.columns), self.moment)

    def _parcels(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        starts = slice_starts(rows.column(POSITION).to_numpy(), len(self.instance_of))
        arcs: dict[int, list[pa.Table]] = {}
        owners = np.asarray(self.instance_of)
        edges = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        for first, end in zip(edges, np.append(edges[1:], len(owners)), strict=True):
            arc = rows.slice(starts[first], starts[end] - starts[first])
            if arc.num_rows:
                arcs.setdefault(int(owners[first]), []).append(arc)
        for instance, tables in arcs.items():
            yield _parcel(instance, None, _pack(pa.concat_tables(tables)))


@dataclass(frozen=True)
class Update:
    """Merge an instance's parcels into its state, and report what was written."""

    step: str
    logic: Logic
    epoch: Epoch
    storage: Storage
    instance_of: tuple[InstanceId, ...]
    chain: tuple[BlockRef, ...]
    moment: Moment
    forget: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        instance = InstanceId(_partition())
        watch, cpu = Stopwatch(), time.process_time()
        blocks = self.storage.open()
        blocks.forget(list(self.forget))
        with watch.part("idle"):
            received = list(batches)
        with watch.part("deserialise"):
            stats, arrivals = _unpack(received)
            mine = frozenset(s for s, owner in enumerate(self.instance_of) if owner == instance)
            chain = Chain([self._run(blocks, ref, mine) for ref in self.chain if self._concerns(ref, mine)], self.logic.layout)
        with watch.part("process"), _naming(self.step, "updating its state"):
            updated = update(self.logic, chain, arrivals, self.moment)
        with watch.part("serialise"):
            run = self._write_run(blocks, updated.run, instance, mine)
            output = self._write_output(blocks, updated.output, instance)
        faults.fire("block.written", self.epoch)
        report = InstanceReport(
            instance, sum(a.num_rows for a in arrivals), updated.output.num_rows, watch["idle"], watch["deserialise"],
            watch["process"], watch["serialise"], time.process_time() - cpu, resident_bytes(),
        )  # fmt: skip
        record = CommitRecord(
            instance, run, tuple(r.name for r in updated.replaced), output, updated.keys_added, updated.keys_removed,
            stats, report,
        )  # fmt: skip
        yield pa.RecordBatch.from_pydict({"record": [record.to_json()]})

    def _concerns(self, ref: BlockRef, mine: frozenset[int]) -> bool:
        return bool(parse_slices(ref.slices) & mine)

    def _run(self, blocks: LocalBlocks, ref: BlockRef, mine: frozenset[int]) -> Run:
        counted = parse_slices(ref.slices)
        live = None
        if ref.partial or not counted <= mine:
            live = np.zeros(len(self.instance_of), np.bool_)
            live[list(counted & mine)] = True
        return Run(blocks.open(ref), self.logic.layout, len(self.instance_of), ref.name, live, ref.expires_us)

    def _write_run(
        self, blocks: LocalBlocks, rows: pa.Table | None, instance: InstanceId, mine: frozenset[int]
    ) -> BlockRef | None:
        if rows is None or not rows.num_rows:
            return None
        return blocks.write(
            rows, operator=self.step, epoch=self.epoch, instance=instance, kind=RUN,
            slices=format_slices(mine), expires_us=_expiry_range(rows, self.logic.layout),
        )  # fmt: skip

    def _write_output(self, blocks: LocalBlocks, rows: pa.Table, instance: InstanceId) -> BlockRef | None:
        if not rows.num_rows:
            return None
        return blocks.write(rows, operator=self.step, epoch=self.epoch, instance=instance, kind=OUTPUT)


@dataclass(frozen=True)
class Capture:
    """Store rows that no keyed step produced, so that a sink can publish them after the commit."""

    step: str
    epoch: Epoch
    storage: Storage
    rows: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        partition = InstanceId(_partition())
        watch, cpu, blocks = Stopwatch(), time.process_time(), self.storage.open()
        with watch.part("idle"):
            rows = _table(list(batches), self.rows)
        output = None
        with watch.part("serialise"):
            if rows.num_rows:
                output = blocks.write(rows, operator=self.step, epoch=self.epoch, instance=partition, kind=OUTPUT)
        faults.fire("block.written", self.epoch)
        report = InstanceReport(
            partition, rows.num_rows, rows.num_rows, watch["idle"], serialise_s=watch["serialise"],
            cpu_s=time.process_time() - cpu, resident_bytes=resident_bytes(),
        )  # fmt: skip
        record = CommitRecord(partition, None, (), output, 0, 0, MapStats(rows.num_rows), report)
        yield pa.RecordBatch.from_pydict({"record": [record.to_json()]})


@dataclass(frozen=True)
class ReadBlocks:
    """Partition i of the result is block i."""

    refs: tuple[BlockRef, ...]
    storage: Storage

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from self.storage.open().open(self.refs[_partition()]).to_batches()


@dataclass(frozen=True)
class MapTable:
    """A user's function over each Arrow batch."""

    step: str
    function: Callable[[pa.Table], pa.Table]
    output: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with _naming(self.step, "calling its function"):
                result = self.function(pa.Table.from_batches([batch]))
                if not isinstance(result, pa.Table):
                    raise TypeError(f"expected the function to return a pyarrow.Table, got {type(result).__name__}")
                if set(result.column_names) != set(self.output.names):
                    raise ValueError(f"expected columns {self.output.names}, got {result.column_names}")
                rows = result.select(self.output.names).cast(self.output)
            yield from rows.to_batches()


@dataclass(frozen=True)
class EachPart:
    """Hand each partition's rows to a sink's function."""

    function: Callable[[int, pa.Table], None]
    rows: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        self.function(_partition(), _table(list(batches), self.rows))
        yield pa.RecordBatch.from_pydict({"record": [""]})


def resident_bytes() -> int:
    """Memory of this process that is its own: mapped files do not count."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


class _naming:
    """Make any error name the step it happened in."""

    def __init__(self, step: str, doing: str) -> None:
        self.step, self.doing = step, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StepFailed):
            raise StepFailed(self.step, self.doing, f"{type(error).__name__}: {error}") from error


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None, "this runs in a Spark task"
    return context.partitionId()


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """All batches as one table of this schema."""
    if not batches:
        return schema.empty_table()
    return pa.Table.from_batches(batches).select(schema.names).cast(schema)


def _chunks(batches: Batches) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _parcel(instance: int, stats: str | None, payload: pa.Buffer | None) -> pa.RecordBatch:
    if payload is None:
        data = pa.nulls(1, pa.binary())
    else:
        offsets = pa.py_buffer(np.array([0, payload.size], np.int32))
        data = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, payload])
    return pa.RecordBatch.from_arrays(
        [pa.array([instance], pa.int32()), pa.array([stats], pa.string()), data], ["instance", "stats", "payload"]
    )


def _pack(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _unpack(batches: list[pa.RecordBatch]) -> tuple[MapStats, list[pa.Table]]:
    stats, tables = MapStats(), []
    for batch in batches:
        for text in batch.column("stats").drop_null().to_pylist():
            stats += MapStats.from_json(text)
        for payload in batch.column("payload").drop_null():
            tables.append(pa.ipc.open_stream(payload.as_buffer()).read_all())
    return stats, tables


def _expiry_range(rows: pa.Table, layout: Layout) -> tuple[int, int] | None:
    if not layout.expires:
        return None
    values = rows.column(EXPIRES).to_numpy()
    return int(values.min()), int(values.max())
