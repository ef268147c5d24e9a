"""Worker-local storage: a cache of blocks that can be memory-mapped.

Runs on workers. Updates trust a local file once this process has written or verified it; a missing or
damaged one is fetched again from the durable store. Bytes that go elsewhere, to the durable store or to
another worker, are read and checked anew, and no others are passed on: a damaged copy never spreads.
"""

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from springtide import faults
from springtide.blocks.block import BlockRef, block_name, checksum, decode, encode, epoch_of, write_table
from springtide.blocks.errors import BlockCorrupt, LocalDiskFailed, Unsound
from springtide.blocks.leftovers import earlier, note_earlier
from springtide.blocks.slice_set import NO_SLICES, SliceSet
from springtide.blocks.store import Store
from springtide.ids import Epoch, InstanceId
from springtide.private import make_private


@dataclass(frozen=True)
class _Verified:
    """A file as it was when this process checked it, and its table once it is mapped."""

    identity: tuple[int, int, int]
    """Inode, size and time of change: a file that was replaced or written to is another one."""
    table: pa.Table | None = None


_verified: dict[str, _Verified] = {}
ABSENT, DAMAGED = "no local copy", "local copy has the wrong checksum"
VERIFIED_MOST = 64
"""The most files that are remembered: mapped ones hold their disk space even when deleted."""
_remembering = threading.Lock()


class LocalBlocks:
    """Writes blocks to this worker and to the durable store, and opens them by memory map."""

    def __init__(
        self, directory: Path, durable: Store, worker: str = "", *, keep: bool = True, driver: str = ""
    ) -> None:
        self.directory = directory
        self.durable = durable
        self.worker = worker
        self.keep = keep
        """False where nobody would ever clear the directory: blocks are then read and written durably only."""
        self.driver = driver
        if keep:
            with _written_to(directory):
                note_earlier(directory, driver)

    def write(
        self,
        table: pa.Table,
        *,
        operator: str,
        epoch: Epoch,
        instance: InstanceId,
        kind: str,
        slices: SliceSet = NO_SLICES,
        expires_us: tuple[int, int] | None = None,
        durable: bool = True,
    ) -> BlockRef:
        """Store a table under a new name, here and durably; return its reference."""
        name = block_name(operator, epoch, instance, kind)
        data = self._written(name, table) if self.keep else encode(table)
        ref = BlockRef(
            name, operator, epoch, table.num_rows, data.size, checksum(data), slices, expires_us, worker=self.worker
        )
        if not durable:
            return ref
        with faults.around("block.put", epoch):
            self.durable.put(ref.path, data)
        return ref

    def open(self, ref: BlockRef, *, checked: bool = False) -> pa.Table:
        """A block's table, memory-mapped; its bytes are checked the first time this process sees it.

        With `checked` they are checked now, and the table lies in memory of its own.
        """
        table, problem = self._checked(ref) if checked else self._local(ref)
        if table is not None:
            return table
        data = self._fetch(ref, problem)
        if self.keep:
            self._keep(ref.name, data)
        return decode(data) if checked or not self.keep else self._mapped(self.directory / ref.name)

    def local(self, ref: BlockRef) -> pa.Table | None:
        """A block's table if this worker has it, whole and with the right bytes."""
        return self._local(ref)[0]

    def sound(self, ref: BlockRef) -> bytes:
        """The bytes of the local copy, in memory of their own, checked now; Unsound if they are not as promised.

        A copy with the wrong checksum is removed: updates, too, must not go on with it.
        """
        path = self.directory / ref.name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise Unsound(ref.name, ABSENT) from None
        except OSError as error:
            raise Unsound(ref.name, f"local copy: {error}") from error
        if not _right(ref, data):
            self.forget([ref.name])
            raise Unsound(ref.name, DAMAGED)
        return data

    def deposit(self, ref: BlockRef) -> None:
        """Make a block that this worker has durable: the very bytes that were checked. Unsound if it has them not."""
        data = self.sound(ref)
        with faults.around("block.put", ref.epoch):
            self.durable.put(ref.path, data)

    def forget(self, names: list[str]) -> None:
        """Remove local copies that no manifest needs."""
        for name in names:
            path = self.directory / name
            path.unlink(missing_ok=True)
            with _remembering:
                _verified.pop(str(path), None)

    def tidy(self, epoch: Epoch, needed: Set[str]) -> None:
        """Remove what earlier drivers left here: blocks up to an epoch, but for those that are needed."""
        left = earlier(self.directory, self.driver)
        written = ((name, epoch_of(name)) for name in left if name not in needed)
        self.forget([name for name, of in written if of is not None and of <= epoch])

    def _checked(self, ref: BlockRef) -> tuple[pa.Table | None, str]:
        try:
            return decode(self.sound(ref)), ""
        except Unsound as error:
            return None, error.reason

    def _local(self, ref: BlockRef) -> tuple[pa.Table | None, str]:
        """The local table, or what is wrong with it."""
        path = self.directory / ref.name
        known, now = _verified.get(str(path)), _identity(path)
        if known is None or known.identity != now:
            problem = _problem(ref, path)
            if problem or now is None:
                return None, problem or ABSENT
            _remember(path, now)
        elif known.table is not None:
            return known.table, ""
        return self._mapped(path), ""

    def _mapped(self, path: Path) -> pa.Table:
        table = _map(path)
        known = _verified.get(str(path))
        if known is not None:  # Else it was forgotten meanwhile.
            _remember(path, known.identity, table)
        return table

    def _fetch(self, ref: BlockRef, local: str) -> bytes:
        try:
            data = self.durable.get(ref.path)
        except FileNotFoundError as error:
            raise self._corrupt(ref, local, "no durable copy") from error
        if not _right(ref, data):
            raise self._corrupt(ref, local, "durable copy has the wrong checksum")
        return data

    def _corrupt(self, ref: BlockRef, *tried: str) -> BlockCorrupt:
        return BlockCorrupt(ref.name, ref.operator, str(ref.slices) or "-", ref.epoch, tried)

    def _keep(self, name: str, data: Any) -> None:
        """Write a local copy that appears whole or not at all."""
        with self._appearing(name) as temporary, open(temporary, "xb") as file:
            file.write(data)

    def _written(self, name: str, table: pa.Table) -> pa.Buffer:
        """The bytes of a table, where they lie in its local copy: they take no memory beside it."""
        with self._appearing(name) as temporary, pa.OSFile(str(temporary), "wb") as file:
            write_table(table, file)
        with pa.memory_map(str(self.directory / name)) as file:
            return file.read_buffer()

    @contextmanager
    def _appearing(self, name: str) -> Iterator[Path]:
        """Around writing a file that is to become a local copy."""
        path = self.directory / name
        temporary = path.with_name(f".{name}.{uuid.uuid4().hex}")
        with _written_to(self.directory):
            make_private(self.directory)
            try:
                yield temporary
                identity = _identity_of(os.stat(temporary))
                os.replace(temporary, path)
            except OSError:
                temporary.unlink(missing_ok=True)  # What is left of it would keep a full disk full.
                raise
        _remember(path, identity)


@contextmanager
def _written_to(directory: Path) -> Iterator[None]:
    """Around writes to a worker's directory: what the system refuses is told with the place and the remedy."""
    try:
        yield
    except OSError as error:
        raise LocalDiskFailed(str(directory), socket.gethostname(), str(error)) from error


def _right(ref: BlockRef, data: Any) -> bool:
    return len(data) == ref.size_bytes and checksum(data) == ref.crc32


def _problem(ref: BlockRef, path: Path) -> str:
    """What is wrong with a local file; empty if it is right."""
    try:
        with pa.memory_map(str(path)) as file:
            return "" if _right(ref, file.read_buffer()) else DAMAGED
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"local copy: {error}"


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Which file lies at a path; None if there is none."""
    try:
        return _identity_of(os.stat(path))
    except OSError:
        return None


def _identity_of(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _remember(path: Path, identity: tuple[int, int, int], table: pa.Table | None = None) -> None:
    with _remembering:  # A task writes its blocks from two threads.
        _verified.pop(str(path), None)
        _verified[str(path)] = _Verified(identity, table)
        while len(_verified) > VERIFIED_MOST:
            del _verified[next(iter(_verified))]


def _map(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
