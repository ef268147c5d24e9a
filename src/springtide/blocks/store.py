"""The durable store: a directory or bucket reached through fsspec.

Two implementations of one contract. Local paths are fsynced, files appear whole or not at all, and
put-if-absent is a hard link. Every other store is expected to behave like an object store: a put is
atomic, and `mode="create"` refuses to overwrite.
"""

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fsspec.implementations.local import LocalFileSystem

from springtide.blocks.drivers import file_system
from springtide.blocks.errors import AlreadyThere
from springtide.blocks.store_errors import failed, translated

Data = Any
"""Anything with the buffer protocol."""


class Store(Protocol):
    """Named immutable byte strings. All names are relative, with '/' between segments."""

    url: str

    def put(self, name: str, data: Data) -> None:
        """Store bytes; when this returns they are durable. Overwrites."""

    def put_if_absent(self, name: str, data: Data) -> None:
        """Store bytes unless the name is taken: then raise AlreadyThere, and change nothing."""

    def copy(self, name: str, to: str) -> None:
        """Let another name stand for the bytes of a name, now and whatever becomes of that; both in this store."""

    def get(self, name: str) -> bytes:
        """The bytes of a name; FileNotFoundError if there are none."""

    def list(self, prefix: str) -> list[str]:
        """The names directly under a directory, sorted; none if it does not exist."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove names; those already gone do not matter."""

    def remove(self, directory: str) -> None:
        """Remove a directory with all that is in it, at any depth; none is no error."""

    def tidy(self, prefix: str) -> None:
        """Remove what writes that were cut short left behind in a directory."""


def open_store(url: str) -> Store:
    """The store at a path or an fsspec URL; NoDriver if the URL's driver is not installed."""
    filesystem, path = file_system(url)
    if isinstance(filesystem, LocalFileSystem):
        return LocalStore(Path(path))
    return ObjectStore(filesystem, path, url)


def put_own(store: Store, name: str, data: Data) -> None:
    """Put-if-absent of bytes that nobody else writes: if they are there, they are ours, and all is well.

    A write may land and its answer be lost. Whoever tries again then, as drivers of object stores do by themselves,
    finds the name taken.
    """
    try:
        store.put_if_absent(name, data)
    except AlreadyThere:
        with suppress(FileNotFoundError):
            if store.get(name) == bytes(data):
                return
        raise


class LocalStore:
    """A directory: fsync before rename, so that a name never stands for half a file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)

    def put(self, name: str, data: Data) -> None:
        path = self.root / name
        try:
            temporary = self._write(path, data)
            os.replace(temporary, path)
            sync_directory(path.parent)
        except OSError as error:
            raise failed("write", name, error) from error

    def put_if_absent(self, name: str, data: Data) -> None:
        path = self.root / name
        try:
            temporary = self._write(path, data)
            try:
                os.link(temporary, path)
            finally:
                os.unlink(temporary)
            sync_directory(path.parent)
        except FileExistsError as error:
            raise AlreadyThere(name) from error
        except OSError as error:
            raise failed("write", name, error) from error

    def copy(self, name: str, to: str) -> None:
        """One more link: files are never changed, only replaced."""
        path = self.root / to
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            os.link(self.root / name, path)
            sync_directory(path.parent)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise failed("copy", name, error) from error

    def _write(self, path: Path, data: Data) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            temporary.unlink(missing_ok=True)  # What is left of it would keep a full disk full.
            error.filename = error.filename or str(path)  # A full disk does not say which one it is.
            raise
        return temporary

    def get(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def list(self, prefix: str) -> list[str]:
        try:
            found = os.listdir(self.root / prefix)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.startswith("."))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self.root / name).unlink(missing_ok=True)

    def remove(self, directory: str) -> None:
        shutil.rmtree(self.root / directory, ignore_errors=True)

    def tidy(self, prefix: str) -> None:
        for path in (self.root / prefix).glob(".*.tmp"):
            path.unlink(missing_ok=True)


class ObjectStore:
    """Any other fsspec file system, used as an object store: no rename, no append.

    Whatever its driver raises comes out as StoreFailed, but for the answers that the contract knows.
    """

    def __init__(self, filesystem: Any, path: str, url: str) -> None:
        self.filesystem = filesystem
        self.path = path.rstrip("/")
        self.url = url

    def put(self, name: str, data: Data) -> None:
        try:
            with translated("write", name):
                self.filesystem.pipe_file(self._at(name), bytes(data))
        except FileNotFoundError as error:  # The bucket does not exist.
            raise failed("write", name, error) from error

    def put_if_absent(self, name: str, data: Data) -> None:
        try:
            with translated("write", name):
                self.filesystem.pipe_file(self._at(name), bytes(data), mode="create")
        except FileExistsError as error:
            raise AlreadyThere(name) from error
        except FileNotFoundError as error:  # The bucket does not exist.
            raise failed("write", name, error) from error

    def copy(self, name: str, to: str) -> None:
        self.put(to, self.get(name))

    def get(self, name: str) -> bytes:
        with translated("read", name):
            data: bytes = self.filesystem.cat_file(self._at(name))
        return data

    def list(self, prefix: str) -> list[str]:
        try:
            with translated("list", prefix):
                self.filesystem.invalidate_cache()
                found = self.filesystem.ls(self._at(prefix), detail=False)
        except FileNotFoundError:
            return []
        names = (name.rsplit("/", 1)[-1] for name in found)
        return sorted(filter(None, names))  # The empty one: an object that stands for the directory, as Hadoop makes.

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                with translated("remove", name):
                    self.filesystem.rm_file(self._at(name))
            except FileNotFoundError:
                continue

    def remove(self, directory: str) -> None:
        try:
            with translated("remove", directory):
                self.filesystem.rm(self._at(directory), recursive=True)
        except FileNotFoundError:
            return

    def tidy(self, prefix: str) -> None:
        """Nothing to do: an object is there whole or not at all."""

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}".rstrip("/")


def sync_directory(directory: Path) -> None:
    """Let the names in a directory survive a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
