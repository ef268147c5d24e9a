"""Where rows are read: combine those of equal key, and address them to their instance."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from springtide import codec
from springtide.engine.wire.commit_record import MapStats
from springtide.engine.worker.hot_keys import hot_keys
from springtide.engine.worker.one_side import OneSide
from springtide.engine.worker.parcel import pack, parcel, pieces
from springtide.engine.worker.read_blocks import ReadBlocks
from springtide.engine.worker.task_context import here, naming, partition, settle
from springtide.metrics.report import HotKey, Sent
from springtide.plan.routes import Arcs, Route
from springtide.state.layout import POSITION
from springtide.state.logic import Arrival, Logic, Moment, canonical_keys
from springtide.state.position import positions, slice_starts
from springtide.state.xxhash import hash_integers

HASH = "__springtide_hash"
FIRST_ROWS_S = 0.2
"""About what a task waits for its first rows, however few they are; that is no work."""
CHUNK_ROWS = 1_000_000
CHUNK_BITS = 32
CHUNK_BYTES = 128 << 20
"""Rows are prepared this much at a time, so that a long partition does not fill the memory."""


class Ready(NamedTuple):
    """Rows for the update, in the order of their positions."""

    stats: MapStats
    """What was seen on the way."""
    rows: pa.Table


@dataclass(frozen=True)
class PrepareRows:
    """Turn a partition's rows into one parcel a route."""

    step: str
    logic: Logic
    key: tuple[str, ...]
    rows: pa.Schema
    slices: int
    routes: tuple[Route, ...]
    moment: Moment
    traffic: bool = False
    """The rows come from a keyed step: tell how many bytes go where."""
    written: ReadBlocks | None = None
    """The blocks that hold the rows, if what comes are their numbers."""
    side: OneSide | None = None
    """The side that the rows are of, if what comes are those of one input of several."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        total = MapStats()
        number = partition() << CHUNK_BITS
        for ready in self.arrivals(batches):
            total += ready.stats
            for rows in pieces(ready.rows):
                yield from self._parcels(rows, number)
                number += 1
        yield parcel(0, codec.dumps(total), None)

    def arrivals(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Ready]:
        """Rows ready for the update, chunk by chunk, and what was seen on the way.

        The time counts from asking for a chunk on: reading it, and stateless steps, are work for this step too.
        """
        began = time.perf_counter() + FIRST_ROWS_S
        rows = batches if self.written is None else self.written(batches)
        rows = rows if self.side is None else self.side(rows)
        for chunk in _chunks(rows):
            arrival, hot = self._arrive(chunk)
            seen = (arrival.rows_in, arrival.late_rows, arrival.malformed_rows, arrival.newest_us)
            sent = self._sent(arrival.rows) if self.traffic else ()
            stats = MapStats(*seen, max(0.0, time.perf_counter() - began), sent, hot, arrival.ahead_rows)
            yield Ready(stats, arrival.rows)
            began = time.perf_counter()

    def _arrive(self, chunk: pa.Table) -> tuple[Arrival, tuple[HotKey, ...]]:
        with naming(self.step, "preparing its rows"):
            rows = chunk.select(self.rows.names).cast(self.rows)
            keys = canonical_keys(rows, self.key)
            hashes = chunk.column(HASH).to_numpy() if HASH in chunk.column_names else hash_integers(keys[0])
            where = positions(hashes, self.slices)
            hot = hot_keys(where, keys, self.slices)
            return self.logic.arrive(where, keys, rows.select(self.logic.columns), self.moment), hot

    def _sent(self, rows: pa.Table) -> tuple[Sent, ...]:
        """Bytes for each slice."""
        count = np.diff(slice_starts(rows.column(POSITION).to_numpy(), self.slices))
        size, worker = rows.nbytes / max(1, rows.num_rows), here()
        return tuple(Sent(worker, int(number), round(count[number] * size)) for number in np.flatnonzero(count))

    def _parcels(self, rows: pa.Table, number: int) -> Iterator[pa.RecordBatch]:
        starts = slice_starts(rows.column(POSITION).to_numpy(), self.slices)
        packed: dict[Arcs, pa.Buffer | None] = {}
        for route in self.routes:
            if route.arcs not in packed:
                pieces = [rows.slice(starts[first], starts[end] - starts[first]) for first, end in route.arcs]
                table = pa.concat_tables(pieces)
                packed[route.arcs] = pack(table) if table.num_rows else None
            payload = packed[route.arcs]
            if payload is not None:
                yield parcel(route.instance, None, payload, backup=route.backup, number=number)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
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
