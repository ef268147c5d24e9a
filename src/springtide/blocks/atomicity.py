"""Whether a store can tell one driver from two: put-if-absent has to be atomic, and not every store's is.

fsspec's own way, which many drivers inherit, looks whether a name is taken and then writes: two may win. So a driver
without a way of its own is refused, and one that has it is put to the test. That finds servers that pay no heed to
the condition, or look and write far apart. It proves nothing: a server in which that is a moment passes.
"""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from springtide.blocks.errors import AlreadyThere
from springtide.blocks.patience import PatientStore
from springtide.blocks.store import ObjectStore, Store, put_own
from springtide.errors import SpringtideError

ROUNDS, RIVALS = 8, 4
ANSWER_S = 60.0
"""How long the rivals of a round may take."""


class NotAtomic(SpringtideError):
    """Two drivers could hold a checkpoint in this store at once."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url, self.reason = url, reason

    def __str__(self) -> str:
        return (
            f"{self.url!r} cannot hold a checkpoint: {self.reason}, so two drivers could take it at once. Expected a "
            "store that refuses to overwrite, atomically: a disk that all drivers share, or an object store with "
            "conditional writes whose fsspec driver uses them, such as S3 with s3fs"
        )


def check_atomic(store: Store, directory: str) -> None:
    """NotAtomic if put-if-absent is not; a store that has to be tried is tried in a directory."""
    if not isinstance(store, ObjectStore) or isinstance(store.filesystem, MemoryFileSystem):
        return  # A disk's hard links are; and memory belongs to one process.
    if not _has_its_own(type(store.filesystem)):
        name = type(store.filesystem).__name__
        raise NotAtomic(store.url, f"its driver {name} looks whether a file is there and then writes it")
    place = f"{directory}/probe-{uuid.uuid4().hex}"
    try:
        for number in range(ROUNDS):
            won = _race(store, f"{place}-{number}")
            if won != 1:
                raise NotAtomic(store.url, f"{won} of {RIVALS} that wrote one name at once were told that it was free")
    finally:
        store.delete(f"{place}-{number}" for number in range(ROUNDS))


def _has_its_own(kind: type) -> bool:
    """Whether a driver writes a file in a way of its own."""
    inherited = (AbstractFileSystem.pipe_file, AsyncFileSystem._pipe_file)
    sync, by_async = getattr(kind, "pipe_file", None), getattr(kind, "_pipe_file", None)
    return (by_async if issubclass(kind, AsyncFileSystem) else sync) not in inherited


def _race(store: Store, name: str) -> int:
    """How many of several win a name that they write at the same moment; a store that is busy then is asked again."""
    ready, patient = threading.Barrier(RIVALS), PatientStore(store)

    def wins(rival: int) -> bool:
        ready.wait(ANSWER_S)
        try:
            put_own(patient, name, f"{rival}".encode())
        except AlreadyThere:
            return False
        return True

    with ThreadPoolExecutor(RIVALS) as pool:
        return sum(pool.map(wins, range(RIVALS)))
