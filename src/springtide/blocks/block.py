"""Blocks: immutable Arrow IPC files with attempt-unique names, and the references to them."""

import re
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

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
    slices: str = ""
    """The slices it counts for, as ranges: '0-63,96'. Empty for output."""
    expires_us: tuple[int, int] | None = field(default=None)
    """The earliest and the latest expiry among its rows."""
    partial: bool = False
    """It also holds rows of slices that it no longer counts for."""
    worker: str = ""
    """Where it was written; empty if the durable store is the only place that matters."""

    def only(self, slices: frozenset[SliceId]) -> "BlockRef | None":
        """The block counting for no other slices than these; None if for none."""
        return self.without(parse_slices(self.slices) - slices)

    def without(self, slices: frozenset[SliceId]) -> "BlockRef | None":
        """The block counting for fewer slices; None if for none."""
        before = parse_slices(self.slices)
        left = before - slices
        if left == before:
            return self
        return replace(self, slices=format_slices(left), partial=True) if left else None

    @property
    def path(self) -> str:
        """Its name in the durable store."""
        return f"{DIRECTORY}/{self.name}"

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v is not None}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "BlockRef":
        expires = fields.get("expires_us")
        return cls(**{**fields, "expires_us": tuple(expires) if expires else None})


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
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decode(data: Any) -> pa.Table:
    """The table in the bytes of an Arrow IPC file, without copying them."""
    return pa.ipc.open_file(pa.BufferReader(data)).read_all()


def checksum(data: Any) -> int:
    return zlib.crc32(data)


def format_slices(slices: Iterable[int]) -> str:
    """Slice numbers as ranges: [0, 1, 2, 5] is '0-2,5'."""
    ranges: list[list[int]] = []
    for number in sorted(slices):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)


def parse_slices(text: str) -> frozenset[SliceId]:
    """The slice numbers that `format_slices` wrote."""
    numbers: set[SliceId] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(map(SliceId, range(int(first), int(last or first) + 1)))
    return frozenset(numbers)
