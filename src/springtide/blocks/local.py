"""Worker-local storage: a cache of blocks that can be memory-mapped.

Runs on workers. A local file is trusted once its checksum has been verified by this process; a
missing or damaged one is fetched again from the durable store.
"""

import os
import threading
import uuid
from collections.abc import Set
from pathlib import Path
from typing import Any

import pyarrow as pa

from springtide import faults
from springtide.blocks.block import BlockRef, block_name, checksum, decode, encode, epoch_of
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.store import Store
from springtide.ids import Epoch, InstanceId
from springtide.private import make_private

_verified: dict[str, pa.Table | None] = {}
"""Local files whose checksum this process has checked, and their tables once they are mapped."""
VERIFIED_MOST = 64
"""Mapped files hold their disk space even when deleted, so only so many are remembered."""
_remembering = threading.Lock()


class LocalBlocks:
    """Writes blocks to this worker and to the durable store, and opens them by memory map."""

    def __init__(self, directory: Path, durable: Store, worker: str = "", *, keep: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        self.worker = worker
        self.keep = keep
        """False where nobody would ever clear the directory: blocks are then read and written durably only."""

    def write(
        self,
        table: pa.Table,
        *,
        operator: str,
        epoch: Epoch,
        instance: InstanceId,
        kind: str,
        slices: str = "",
        expires_us: tuple[int, int] | None = None,
        durable: bool = True,
    ) -> BlockRef:
        """Store a table under a new name, here and durably; return its reference."""
        data = encode(table)
        name = block_name(operator, epoch, instance, kind)
        ref = BlockRef(
            name, operator, epoch, table.num_rows, data.size, checksum(data), slices, expires_us, worker=self.worker
        )
        if self.keep:
            self._keep(name, data)
        if not durable:
            return ref
        with faults.around("block.put", epoch):
            self.durable.put(ref.path, data)
        return ref

    def open(self, ref: BlockRef) -> pa.Table:
        """A block's table, memory-mapped; its bytes are checked the first time this process sees it."""
        table, problem = self._local(ref)
        if table is not None:
            return table
        data = self._fetch(ref, problem)
        if not self.keep:
            return decode(data)
        self._keep(ref.name, data)
        return self._mapped(self.directory / ref.name)

    def local(self, ref: BlockRef) -> pa.Table | None:
        """A block's table if this worker has it, whole and with the right bytes."""
        return self._local(ref)[0]

    def deposit(self, ref: BlockRef) -> bool:
        """Make a block that this worker has durable; False if it has it not, or not with the right bytes."""
        if self._local(ref)[0] is None:
            return False
        with pa.memory_map(str(self.directory / ref.name)) as file, faults.around("block.put", ref.epoch):
            self.durable.put(ref.path, file.read_buffer())
        return True

    def forget(self, names: list[str]) -> None:
        """Remove local copies that no manifest needs."""
        for name in names:
            path = self.directory / name
            path.unlink(missing_ok=True)
            with _remembering:
                _verified.pop(str(path), None)

    def tidy(self, epoch: Epoch, needed: Set[str]) -> None:
        """Remove local copies of blocks up to an epoch, but for those that are needed."""
        try:
            there = os.listdir(self.directory)
        except FileNotFoundError:
            return
        written = ((name, epoch_of(name)) for name in there if name not in needed)
        self.forget([name for name, of in written if of is not None and of <= epoch])

    def _local(self, ref: BlockRef) -> tuple[pa.Table | None, str]:
        """The local table, or what is wrong with it."""
        path = self.directory / ref.name
        table = _verified.get(str(path))
        if table is not None:
            return table, ""
        if str(path) not in _verified or not path.exists():
            problem = _problem(ref, path)
            if problem:
                return None, problem
            _remember(path)
        return self._mapped(path), ""

    def _mapped(self, path: Path) -> pa.Table:
        table = _map(path)
        _remember(path, table)
        return table

    def _fetch(self, ref: BlockRef, local: str) -> bytes:
        try:
            data = self.durable.get(ref.path)
        except FileNotFoundError as error:
            raise self._corrupt(ref, local, "no durable copy") from error
        if len(data) != ref.size_bytes or checksum(data) != ref.crc32:
            raise self._corrupt(ref, local, "durable copy has the wrong checksum")
        return data

    def _corrupt(self, ref: BlockRef, *tried: str) -> BlockCorrupt:
        return BlockCorrupt(ref.name, ref.operator, ref.slices or "-", ref.epoch, tried)

    def _keep(self, name: str, data: Any) -> None:
        """Write a local copy that appears whole or not at all."""
        path = self.directory / name
        make_private(self.directory)
        temporary = path.with_name(f".{name}.{uuid.uuid4().hex}")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)  # What is left of it would keep a full disk full.
            raise
        _remember(path)


def _problem(ref: BlockRef, path: Path) -> str:
    """What is wrong with a local file; empty if it is right."""
    try:
        with pa.memory_map(str(path)) as file:
            right = file.size() == ref.size_bytes and checksum(file.read_buffer()) == ref.crc32
            return "" if right else "local copy has the wrong checksum"
    except FileNotFoundError:
        return "no local copy"
    except OSError as error:
        return f"local copy: {error}"


def _remember(path: Path, table: pa.Table | None = None) -> None:
    with _remembering:  # A task writes its blocks from two threads.
        _verified.pop(str(path), None)
        _verified[str(path)] = table
        while len(_verified) > VERIFIED_MOST:
            del _verified[next(iter(_verified))]


def _map(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
