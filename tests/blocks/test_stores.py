"""Durable stores: all keep one contract, and each has promises of its own."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from blocks_kit import AFTER, BEFORE, Crash, S3Like, crash_in_the_file_system, everything, s3_store
from store_contract import Contract

from springtide.blocks.errors import AlreadyThere, LocalDiskFailed, StoreFailed
from springtide.blocks.store import LocalStore, ObjectStore, Store, open_store


def local_store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "checkpoint")


def memory_store(tmp_path: Path) -> Store:
    return open_store(f"memory://{tmp_path}/checkpoint")


STORES: dict[str, Callable[[Path], Store]] = {
    "local": local_store,
    "memory": memory_store,
    "s3": lambda tmp_path: s3_store(),
}


class TestContract(Contract):
    """Every store that needs no server; `tests/s3` has one that does."""

    @pytest.fixture(params=sorted(STORES))
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
        return STORES[request.param](tmp_path)


class TestLocal:
    """A directory: whole files only, and they last."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path)

    def test_a_put_if_absent_has_one_winner(self, store: LocalStore) -> None:
        start, won, lost = threading.Barrier(8), [], []

        def race(number: int) -> None:
            data = bytes([number]) * 5000
            start.wait()
            try:
                store.put_if_absent("claim", data)
                won.append(data)
            except AlreadyThere:
                lost.append(number)

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert len(lost) == 7
        assert store.get("claim") == won[0]

    @pytest.mark.parametrize("call", ["put", "put_if_absent"])
    def test_a_crash_at_any_system_call_leaves_the_old_version_or_the_new(self, store: LocalStore, call: str) -> None:
        for calls in range(20):
            name = f"blocks/{calls}"
            if call == "put":
                store.put(name, b"old")
            with crash_in_the_file_system(calls) as system:
                try:
                    getattr(store, call)(name, b"new" * 1000)
                except Crash:
                    pass
                else:
                    break
            there = store.get(name) if str(calls) in store.list("blocks") else None
            assert there in ((b"old", b"new" * 1000) if call == "put" else (None, b"new" * 1000))
        else:
            pytest.fail("the call never came to its end")
        assert system.left >= 0
        assert calls >= 3, "write, sync, and give it its name: there are that many places to crash at"
        store.tidy("blocks")
        assert sorted(os.listdir(store.root / "blocks")) == store.list("blocks"), "tidying removes the rest"

    def test_what_a_put_returns_from_is_on_the_disk(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file is synced before it gets its name, and its directory after."""
        done: list[str] = []

        def note(call: str) -> Callable[..., Any]:
            real = getattr(os, call)

            def noted(*args: Any) -> Any:
                done.append(call)
                return real(*args)

            return noted

        for call in ("fsync", "replace", "link"):
            monkeypatch.setattr(os, call, note(call))
        store.put("a", b"1")
        assert done == ["fsync", "replace", "fsync"]
        done.clear()
        store.put_if_absent("b", b"1")
        assert done == ["fsync", "link", "fsync"]

    @pytest.mark.parametrize("call", ["put", "put_if_absent"])
    def test_a_full_disk_is_an_error_with_a_reason_and_leaves_nothing(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        store.put("blocks/old", b"old")
        before = everything(store)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            StoreFailed, match=r"could not write 'blocks/new': .*No space left.*start the app again"
        ) as caught:
            getattr(store, call)("blocks/new", b"new")
        assert repr(f"{store.root}/blocks/new") in str(caught.value), "it says which disk"
        assert (caught.value.action, caught.value.path) == ("write", "blocks/new")
        assert everything(store) == before, "a cut-short file would keep the disk full"

    def test_a_directory_that_cannot_be_written_is_an_error_with_a_reason(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(StoreFailed, match="could not write 'a'"):
            LocalStore(tmp_path / "file").put("a", b"")

    def test_a_reader_never_sees_half_a_file_while_a_writer_is_killed(self, tmp_path: Path) -> None:
        """A process overwrites one name for ever, and is killed; every read before and after is whole."""
        program = (
            "import sys; from pathlib import Path; from springtide.blocks.store import LocalStore\n"
            "store = LocalStore(Path(sys.argv[1]))\n"
            "store.put('a', b'0' * 300_000); print('go', flush=True)\n"
            "while True:\n"
            "    for c in b'123': store.put('a', bytes([c]) * 300_000)\n"
        )
        command = [sys.executable, "-c", program, str(tmp_path)]
        writer = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            seen: set[int] = set()
            store = LocalStore(tmp_path)
            deadline = time.monotonic() + 20
            while len(seen) < 3 and time.monotonic() < deadline:
                data = store.get("a")
                assert len(data) == 300_000
                assert len(set(data)) == 1
                seen.add(data[0])
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
        assert len(seen) == 3, "the writer was at work"
        assert len(set(store.get("a"))) == 1
        assert store.list("") == ["a"], "what the dead writer left is not seen"


class TestObjectStore:
    """A bucket: calls that fail, before they took effect or after."""

    @pytest.fixture
    def bucket(self) -> S3Like:
        return S3Like()

    @pytest.mark.parametrize("call", ["put", "put_if_absent"])
    @pytest.mark.parametrize("when", [BEFORE, AFTER])
    def test_a_failed_write_is_an_error_with_a_reason(self, bucket: S3Like, call: str, when: str) -> None:
        store = s3_store(bucket)
        bucket.fail = lambda name, path: when if name == "put" else None
        with pytest.raises(StoreFailed, match=r"could not write 'a/b': .*the bucket did not answer") as caught:
            getattr(store, call)("a/b", b"data")
        assert caught.value.reason
        bucket.fail = lambda name, path: None
        assert store.list("a") == (["b"] if when == AFTER else [])

    def test_an_error_without_words_still_gives_a_reason(self, bucket: S3Like) -> None:
        bucket.fail, bucket.error = lambda name, path: BEFORE, TimeoutError
        with pytest.raises(StoreFailed, match="TimeoutError"):
            s3_store(bucket).put("a", b"")

    def test_put_if_absent_has_one_winner(self, bucket: S3Like) -> None:
        store = s3_store(bucket)
        outcomes = []
        for number in range(3):
            try:
                store.put_if_absent("claim", bytes([number]))
                outcomes.append("won")
            except AlreadyThere:
                outcomes.append("lost")
        assert outcomes == ["won", "lost", "lost"]

    def test_a_url_with_a_slash_at_its_end_is_the_same_place(self) -> None:
        bucket = S3Like()
        ObjectStore(bucket, "/bucket/checkpoint/", "s3like://").put("a/b", b"1")
        assert s3_store(bucket).get("a/b") == b"1"


def test_a_path_is_a_local_store_and_any_other_url_an_object_store(tmp_path: Path) -> None:
    assert isinstance(open_store(str(tmp_path)), LocalStore)
    assert isinstance(open_store(f"file://{tmp_path}"), LocalStore)
    store = open_store("memory://somewhere/else")
    assert isinstance(store, ObjectStore)
    store.put("x", b"1")
    assert fsspec.filesystem("memory").cat_file("/somewhere/else/x") == b"1"
    assert open_store(open_store(str(tmp_path)).url).url == str(tmp_path), "workers open a store again by its url"


@pytest.mark.parametrize(
    "error", [StoreFailed("write", "a/b", "full"), AlreadyThere("a/b"), LocalDiskFailed("/a", "here", "full")]
)
def test_store_errors_survive_the_way_from_a_worker(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
