"""Fault 47: a store whose put-if-absent two can win is refused before anything is claimed."""

import time
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow.fs as pafs
import pytest
from blocks_kit import s3_store
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem

from springtide.blocks.atomicity import NotAtomic, check_atomic
from springtide.blocks.claim import claim
from springtide.blocks.store import LocalStore, ObjectStore


class Bucket(LocalFileSystem):  # type: ignore[misc]
    """An object store with a way of its own to write, which may be atomic."""

    cachable = False

    def __init__(self, *, atomic: bool) -> None:
        super().__init__(auto_mkdir=True)
        self.atomic, self._lock = atomic, Lock()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        if self.atomic:
            with self._lock:
                self._put(path, value, mode)
        else:
            self._put(path, value, mode)

    def _put(self, path: str, value: bytes, mode: str) -> None:
        if mode == "create" and self.exists(path):
            raise FileExistsError
        time.sleep(0.01)  # The way to the bucket.
        with self.open(path, "wb") as file:
            file.write(value)


def test_a_disk_a_memory_and_a_bucket_with_conditional_writes_will_do(tmp_path: Path) -> None:
    check_atomic(LocalStore(tmp_path), "drivers")
    check_atomic(s3_store(), "drivers")
    bucket = ObjectStore(Bucket(atomic=True), str(tmp_path / "bucket"), "bucket://here")
    check_atomic(bucket, "drivers")
    assert bucket.list("drivers") == [], "what it took to find out is gone"


def test_a_bucket_that_two_win_is_refused(tmp_path: Path) -> None:
    bucket = ObjectStore(Bucket(atomic=False), str(tmp_path / "bucket"), "bucket://here")
    with pytest.raises(NotAtomic, match=r"'bucket://here' cannot hold a checkpoint: 4 of 4 .*conditional writes"):
        claim(bucket)
    assert bucket.list("drivers") == []


def test_a_driver_that_has_only_the_inherited_way_is_refused(tmp_path: Path) -> None:
    hdfs_like = ObjectStore(ArrowFSWrapper(pafs.LocalFileSystem()), str(tmp_path), "hdfs://here")
    with pytest.raises(NotAtomic, match="its driver ArrowFSWrapper looks whether a file is there and then writes it"):
        claim(hdfs_like)
    assert list(tmp_path.iterdir()) == []
