"""What the tests of a worker's blocks share: a block, its copies, and ways to harm them."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from springtide.blocks import local
from springtide.blocks.block import RUN, BlockRef
from springtide.blocks.local import LocalBlocks
from springtide.blocks.store import LocalStore
from springtide.ids import Epoch, InstanceId

TABLE = pa.table({"k": ["a", None, "日本"], "n": pa.array([1, 2, 3], pa.int64()), "l": [[1], [], None]})


def write(blocks: LocalBlocks, table: pa.Table = TABLE, **options: Any) -> BlockRef:
    fields = {"operator": "counts", "epoch": Epoch(7), "instance": InstanceId(3), "kind": RUN, "slices": "0-3,9"}
    return blocks.write(table, **{**fields, **options})


def new_process() -> None:
    """A process that has just started has verified nothing."""
    local._verified.clear()


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.chmod(0o600)
    path.write_bytes(data)


def rot(path: Path, bit: int = 4000) -> None:
    """Flip a bit as a disk does: nobody wrote to the file, and its times are as they were."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def local_copy(blocks: LocalBlocks, ref: BlockRef) -> Path:
    return blocks.directory / ref.name


def durable_copy(blocks: LocalBlocks, ref: BlockRef) -> Path:
    assert isinstance(blocks.durable, LocalStore)
    return blocks.durable.root / ref.path
