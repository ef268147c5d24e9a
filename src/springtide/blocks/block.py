"""Blocks: immutable Arrow IPC files with attempt-unique names, and the references to them."""

import re
import uuid
import zlib
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from springtide.blocks.slice_set import NO_SLICES, SliceSet
from springtide.ids import Epoch, InstanceId, SliceId

RUN = "run"
OUTPUT = "output"
PART = "part"
"""Some slices of a run, copied to a worker that stands by."""
PENDING = "pending"
"""An epoch's rows for slices that were stalled; they have not been processed."""
BACKUP = "backup"
"""An epoch's rows for some slices, kept by a worker that stands by."""
DIRECTORY = "blocks"


@dataclass(frozen=True)
class BlockRef:
    """What a manifest says of a block: enough to find it and to know whether its bytes are right."""

    name: str
    operator: str
    epoch: Epoch
    rows: int
    size_bytes: int
    crc32: int
    slices: SliceSet = NO_SLICES
    """The slices it counts for; none for output."""
    expires_us: tuple[int, int] | None = None
    """The earliest and the latest expiry among its rows."""
    partial: bool = False
    """It also holds rows of slices that it no longer counts for."""
    worker: str = ""
    """Where it was written; empty if the durable store is the only place that matters."""

    def only(self, slices: frozenset[SliceId]) -> "BlockRef | None":
        """The block counting for no other slices than these; None if for none."""
        return self.without(self.slices - slices)

    def without(self, slices: frozenset[SliceId]) -> "BlockRef | None":
        """The block counting for fewer slices; None if for none."""
        left = self.slices - slices
        if left == self.slices:
            return self
        return replace(self, slices=SliceSet.of(left), partial=True) if left else None

    @property
    def path(self) -> str:
        """Its name in the durable store."""
        return f"{DIRECTORY}/{self.name}"


def block_name(operator: str, epoch: Epoch, instance: InstanceId, kind: str) -> str:
    """A name no other attempt will ever use, so that a zombie can't overwrite anything."""
    return f"{operator}.{epoch:09d}.{instance}.{kind}.{uuid.uuid4().hex}.arrow"


_NAME = re.compile(r"[A-Za-z0-9_-]+\.(\d{9,})\.\d+\.(?:run|output|pending|part|backup)\.[0-9a-f]{32}\.arrow")


def epoch_of(name: str) -> Epoch | None:
    """The epoch a block was written in, from its name; None if it is not the name of a block."""
    match = _NAME.fullmatch(name)
    return Epoch(int(match[1])) if match else None


def encode(table: pa.Table) -> pa.Buffer:
    """A table as the bytes of an Arrow IPC file."""
    sink = pa.BufferOutputStream()
    write_table(table, sink)
    return sink.getvalue()


def write_table(table: pa.Table, sink: Any) -> None:
    """Write a table as an Arrow IPC file."""
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def decode(data: Any) -> pa.Table:
    """The table in the bytes of an Arrow IPC file, without copying them."""
    return pa.ipc.open_file(pa.BufferReader(data)).read_all()


def checksum(data: Any) -> int:
    return zlib.crc32(data)
