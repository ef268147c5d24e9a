"""Stores that fail and crash on demand, and small manifests and blocks to put into them."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from springtide.blocks import store as store_module
from springtide.blocks.block import OUTPUT, RUN, BlockRef, block_name
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore, ObjectStore, Store
from springtide.ids import Epoch, InstanceId, PlanVersion

BEFORE, AFTER = "before", "after"
Outcome = str | None
T = TypeVar("T")


class S3Like(MemoryFileSystem):  # type: ignore[misc]
    """An object store in memory: atomic puts, no rename, no append; calls fail on demand.

    `fail` gets each call's name and path and says whether it fails before or after its effect.
    """

    cachable = False
    protocol = "s3like"

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.fail: Callable[[str, str], Outcome] = lambda call, path: None
        self.error: Callable[[], Exception] = lambda: OSError(errno.ETIMEDOUT, "the bucket did not answer")
        self._lock = Lock()

    def _call(self, name: str, path: str, effect: Callable[[], T]) -> T:
        outcome = self.fail(name, path)
        if outcome == BEFORE:
            raise self.error()
        with self._lock:
            result = effect()
        if outcome == AFTER:
            raise self.error()
        return result

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        assert type(value) is bytes, "an object store takes bytes"
        self._call("put", path, lambda: super(S3Like, self).pipe_file(path, value, mode=mode, **options))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        return bytes(self._call("get", path, lambda: super(S3Like, self).cat_file(path, start, end, **options)))

    def rm_file(self, path: str) -> None:
        self._call("delete", path, lambda: super(S3Like, self).rm_file(path))

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        return self._call("list", path, lambda: super(S3Like, self).ls(path, detail=detail, **options))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        assert "a" not in mode, "an object store cannot append"
        assert "+" not in mode, "an object store cannot write in place"
        return super()._open(path, mode=mode, **options)

    def mv(self, *args: Any, **options: Any) -> None:
        raise AssertionError("an object store cannot rename")

    def cp_file(self, *args: Any, **options: Any) -> None:
        raise AssertionError("a copy is a rename in disguise")


def s3_store(filesystem: S3Like | None = None) -> ObjectStore:
    return ObjectStore(filesystem or S3Like(), "/bucket/checkpoint", "s3like://bucket/checkpoint")


class Crash(BaseException):
    """The driver is gone. Not an Exception, so that nothing can handle it."""


class CrashingStore:
    """Passes calls on until its time has come: then the driver dies just before or just after a call."""

    def __init__(self, inner: Store, calls: int | None, when: str = BEFORE) -> None:
        self.inner, self.left, self.when = inner, calls, when
        self.url = inner.url

    def _call(self, effect: Callable[[], T]) -> T:
        if self.left is None:
            return effect()
        self.left -= 1
        if self.left < 0:
            raise Crash
        if self.left == 0 and self.when == BEFORE:
            raise Crash
        result = effect()
        if self.left == 0:
            raise Crash
        return result

    def put(self, name: str, data: Any) -> None:
        self._call(lambda: self.inner.put(name, data))

    def put_if_absent(self, name: str, data: Any) -> None:
        self._call(lambda: self.inner.put_if_absent(name, data))

    def copy(self, name: str, to: str) -> None:
        self._call(lambda: self.inner.copy(name, to))

    def get(self, name: str) -> bytes:
        return self._call(lambda: self.inner.get(name))

    def list(self, prefix: str) -> list[str]:
        return self._call(lambda: self.inner.list(prefix))

    def delete(self, names: Iterable[str]) -> None:
        """One call a name: a crash leaves some of them deleted."""
        for name in names:
            self._call(lambda name=name: self.inner.delete([name]))  # type: ignore[misc]

    def remove(self, directory: str) -> None:
        self._call(lambda: self.inner.remove(directory))

    def tidy(self, prefix: str) -> None:
        self._call(lambda: self.inner.tidy(prefix))


class _CrashingOs:
    """The `os` module, whose nth call that touches the disk kills the driver instead."""

    CALLS = frozenset({"replace", "link", "unlink", "fsync", "open"})

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __getattr__(self, name: str) -> Any:
        if name not in self.CALLS:
            return getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Crash
            return getattr(os, name)(*args, **options)

        return call


@contextmanager
def crash_in_the_file_system(calls: int) -> Iterator[_CrashingOs]:
    """Within: the local store gets a number of system calls, and then the driver is dead."""
    with pytest.MonkeyPatch.context() as patch:
        fake = _CrashingOs(calls)
        patch.setattr(store_module, "os", fake)
        yield fake


def everything(store: Store) -> dict[str, bytes]:
    """All names in a store and their bytes, to prove that nothing was written."""
    if isinstance(store, LocalStore):
        return {str(p.relative_to(store.root)): p.read_bytes() for p in Path(store.root).rglob("*") if p.is_file()}
    assert isinstance(store, ObjectStore)
    return {path: bytes(file.getbuffer()) for path, file in store.filesystem.store.items()}


def a_ref(epoch: int, kind: str = RUN, operator: str = "counts", instance: int = 0) -> BlockRef:
    """A reference to a block that has a name, and bytes that nobody reads."""
    name = block_name(operator, Epoch(epoch), InstanceId(instance), kind)
    return BlockRef(name, operator, Epoch(epoch), 1, 1, 0, SliceSet.parse("0-3" if kind == RUN else ""))


def put_block(store: Store, ref: BlockRef) -> BlockRef:
    store.put(ref.path, b"x")
    return ref


def next_manifest(
    parent: Manifest | None, *, keep: int = 0, driver: int = 1, operator: str = "counts", blocks: int = 1
) -> Manifest:
    """A manifest after a parent, with some of the parent's runs, new runs, and an output block."""
    epoch = 0 if parent is None else parent.epoch + 1
    old = () if parent is None else parent.operators[operator].runs[:keep]
    runs = (*old, *(a_ref(epoch) for _ in range(blocks)))
    return Manifest(
        "app",
        Epoch(epoch),
        "" if parent is None else parent.id,
        PlanVersion(1),
        driver,
        {operator: OperatorState(runs, keys=epoch)},
        {operator: (a_ref(epoch, OUTPUT),)},
    )


def new_refs(manifest: Manifest) -> list[BlockRef]:
    """The blocks that were written in the manifest's own epoch."""
    refs = [r for state in manifest.operators.values() for r in state.runs]
    refs += [r for outputs in manifest.outputs.values() for r in outputs]
    return [r for r in refs if r.epoch == manifest.epoch]
