"""Worker-local storage: a cache of blocks that can be memory-mapped.

Runs on workers. A local file is trusted once its checksum has been verified by this process; a
missing or damaged one is fetched again from the durable store.
"""

import os
import threading
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa

from springtide import faults
from springtide.blocks.block import BlockRef, block_name, checksum, encode
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.store import Store
from springtide.ids import Epoch, InstanceId

_verified: dict[str, pa.Table | None] = {}
"""Local files whose checksum this process has checked, and their tables once they are mapped."""
VERIFIED_MOST = 64
"""Mapped files hold their disk space even when deleted, so only so many are remembered."""
_remembering = threading.Lock()


class LocalBlocks:
    """Writes blocks to this worker and to the durable store, and opens them by memory map."""

    def __init__(self, directory: Path, durable: Store) -> None:
        self.directory = directory
        self.durable = durable

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
    ) -> BlockRef:
        """Store a table under a new name, here and durably; return its reference."""
        data = encode(table)
        name = block_name(operator, epoch, instance, kind)
        ref = BlockRef(name, operator, epoch, table.num_rows, data.size, checksum(data), slices, expires_us)
        self._keep(name, data)
        with faults.around("block.put", epoch):
            self.durable.put(ref.path, data)
        return ref

    def open(self, ref: BlockRef) -> pa.Table:
        """A block's table, memory-mapped; its bytes are checked the first time this process sees it."""
        path = self.directory / ref.name
        table = _verified.get(str(path))
        if table is None:
            if str(path) not in _verified or not path.exists():
                self._verify(ref, path)
            table = _map(path)
            _remember(path, table)
        return table

    def forget(self, names: list[str]) -> None:
        """Remove local copies that no manifest needs."""
        for name in names:
            path = self.directory / name
            path.unlink(missing_ok=True)
            with _remembering:
                _verified.pop(str(path), None)

    def _verify(self, ref: BlockRef, path: Path) -> None:
        try:
            with pa.memory_map(str(path)) as file:
                local = "local copy has the wrong checksum"
                if file.size() == ref.size_bytes and checksum(file.read_buffer()) == ref.crc32:
                    _remember(path)
                    return
        except FileNotFoundError:
            local = "no local copy"
        except OSError as error:
            local = f"local copy: {error}"
        data = self._fetch(ref, local)
        self._keep(ref.name, data)

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
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{name}.{uuid.uuid4().hex}")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)  # What is left of it would keep a full disk full.
            raise
        _remember(path)


def _remember(path: Path, table: pa.Table | None = None) -> None:
    with _remembering:  # A task writes its blocks from two threads.
        _verified.pop(str(path), None)
        _verified[str(path)] = table
        while len(_verified) > VERIFIED_MOST:
            del _verified[next(iter(_verified))]


def _map(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
