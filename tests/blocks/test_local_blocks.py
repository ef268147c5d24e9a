"""Blocks: checksums, names that no other attempt uses, damage found and mended, nothing unpickled."""

import os
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from blocks_kit import AFTER, BEFORE, S3Like, s3_store
from local_kit import TABLE, durable_copy, flip, local_copy, rot, write

from springtide.blocks import local
from springtide.blocks.block import (
    BlockRef,
    checksum,
    decode,
)
from springtide.blocks.errors import BlockCorrupt, LocalDiskFailed, StoreFailed, Unsound
from springtide.blocks.local import LocalBlocks
from springtide.ids import Epoch


class TestWriting:
    def test_a_block_is_on_the_worker_and_durable_with_the_bytes_its_reference_promises(
        self, blocks: LocalBlocks
    ) -> None:
        ref = write(blocks, expires_us=(1, 9))
        assert local_copy(blocks, ref).read_bytes() == durable_copy(blocks, ref).read_bytes()
        data = durable_copy(blocks, ref).read_bytes()
        assert (ref.size_bytes, ref.crc32, ref.rows) == (len(data), checksum(data), 3)
        assert (ref.operator, ref.epoch, ref.slices, ref.expires_us) == ("counts", 7, "0-3,9", (1, 9))
        assert blocks.open(ref) == TABLE
        assert decode(data) == TABLE

    def test_two_attempts_never_share_a_name(self, blocks: LocalBlocks) -> None:
        """A zombie that writes the same instance of the same epoch once more overwrites nothing."""
        refs = [write(blocks) for _ in range(20)]
        assert len({ref.name for ref in refs}) == 20
        assert len(blocks.durable.list("blocks")) == 20
        assert all(blocks.open(ref) == TABLE for ref in refs)

    @pytest.mark.parametrize("when", [BEFORE, AFTER])
    def test_a_block_that_could_not_be_made_durable_is_an_error(self, tmp_path: Path, when: str) -> None:
        bucket = S3Like()
        bucket.fail = lambda call, path: when if call == "put" else None
        with pytest.raises(StoreFailed, match="could not write 'blocks/counts"):
            write(LocalBlocks(tmp_path, s3_store(bucket)))

    def test_nothing_half_written_is_left_when_the_local_disk_is_full(
        self, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(source: Any, target: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        told = r"directory .* on host .*No space left on device\. Free space"
        with pytest.raises(LocalDiskFailed, match=told) as failed:
            write(blocks)
        assert failed.value.directory == str(blocks.directory)
        assert [name for name in os.listdir(blocks.directory) if not name.startswith(".before.")] == []
        assert blocks.durable.list("blocks") == []

    def test_a_full_disk_is_told_of_when_a_new_driver_comes_too(
        self, tmp_path: Path, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(source: Any, target: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "link", full)
        with pytest.raises(LocalDiskFailed, match="No space left"):
            LocalBlocks(tmp_path / "new", blocks.durable, driver="000000002.b")
        assert os.listdir(tmp_path / "new") == []

    def test_forgetting_removes_the_local_copy_only(self, blocks: LocalBlocks) -> None:
        ref = write(blocks)
        blocks.forget([ref.name, "never-there"])
        assert not local_copy(blocks, ref).exists()
        assert blocks.open(ref) == TABLE, "and the durable one still serves"

    def test_a_deposit_makes_a_local_block_durable(self, blocks: LocalBlocks) -> None:
        ref = write(blocks, durable=False)
        assert blocks.durable.list("blocks") == []
        blocks.deposit(ref)
        blocks.forget([ref.name])
        assert blocks.open(ref) == TABLE
        with pytest.raises(Unsound, match="no local copy"):
            blocks.deposit(replace(ref, name="never-there"))
        assert blocks.durable.list("blocks") == [ref.name]

    def test_tidying_leaves_what_is_needed_and_what_is_new(self, blocks: LocalBlocks) -> None:
        refs = {
            (epoch, kind): write(blocks, epoch=Epoch(epoch), kind=kind)
            for epoch in (3, 4, 5)
            for kind in ("run", "backup")
        }
        (blocks.directory / "notes.txt").write_text("not ours")
        LocalBlocks(blocks.directory, blocks.durable, driver="next").tidy(Epoch(4), {refs[3, "run"].name})
        left = {refs[key].name for key in [(3, "run"), (5, "run"), (5, "backup")]}
        assert {path.name for path in blocks.directory.iterdir()} == {*left, "notes.txt", ".before.next"}

    def test_threads_of_a_task_may_write_and_forget_side_by_side(
        self, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is remembered of verified files is shared, and has a bound that all of them run into."""
        monkeypatch.setattr(local, "VERIFIED_MOST", 4)
        switch_s = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)

        def work(number: int) -> None:
            for i in range(3000):
                local._remember(Path(f"/worker/{number}.{i}"), (number, i, 0))
                blocks.forget([f"{number}.{i}"])

        try:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
        finally:
            sys.setswitchinterval(switch_s)
        assert len(local._verified) <= 4

    def test_a_block_that_is_no_longer_remembered_is_verified_again(
        self, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(local, "VERIFIED_MOST", 2)
        first = write(blocks)
        for _ in range(2):
            blocks.open(write(blocks))
        flip(local_copy(blocks, first), 4000)
        assert blocks.open(first) == TABLE


class TestSpreading:
    """Bytes that go elsewhere are checked anew, whatever this process has seen of them before."""

    @pytest.fixture
    def rotten(self, blocks: LocalBlocks) -> BlockRef:
        """A block that this process wrote and mapped, with a bit that has flipped since."""
        ref = write(blocks, durable=False)
        assert blocks.open(ref) == TABLE
        rot(local_copy(blocks, ref))
        return ref

    def test_a_copy_that_has_rotted_is_not_made_durable(self, blocks: LocalBlocks, rotten: BlockRef) -> None:
        with pytest.raises(Unsound, match="local copy has the wrong checksum") as caught:
            blocks.deposit(rotten)
        assert blocks.durable.list("blocks") == []
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (str(copy), vars(copy)) == (str(caught.value), vars(caught.value))

    def test_nobody_goes_on_with_a_copy_that_was_found_rotten(self, blocks: LocalBlocks, rotten: BlockRef) -> None:
        remembered = dict(local._verified)
        with pytest.raises(Unsound):
            blocks.deposit(rotten)
        assert blocks.local(rotten) is None
        local._verified.update(remembered)
        assert blocks.local(rotten) is None, "another process that has it mapped sees that it is gone"

    def test_what_is_made_durable_is_what_was_checked(
        self, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bit that flips between the check and the write is not written."""
        ref = write(blocks, durable=False)
        put = blocks.durable.put

        def late(name: str, data: Any) -> None:
            rot(local_copy(blocks, ref))
            put(name, data)

        monkeypatch.setattr(blocks.durable, "put", late)
        blocks.deposit(ref)
        assert checksum(durable_copy(blocks, ref).read_bytes()) == ref.crc32

    def test_a_checked_table_is_the_durable_one_if_the_local_copy_has_rotted(
        self, blocks: LocalBlocks, rotten: BlockRef
    ) -> None:
        with pytest.raises(BlockCorrupt, match="local copy has the wrong checksum; no durable copy"):
            blocks.open(rotten, checked=True)
        ref = write(blocks)
        blocks.open(ref)
        rot(local_copy(blocks, ref))
        assert blocks.open(ref, checked=True) == TABLE
        assert checksum(local_copy(blocks, ref).read_bytes()) == ref.crc32, "the local copy is whole again"

    def test_a_checked_table_does_not_change_with_its_file(self, blocks: LocalBlocks) -> None:
        ref = write(blocks, pa.table({"n": pa.array(range(1000), pa.int64())}))
        table = blocks.open(ref, checked=True)
        for bit in range(0, ref.size_bytes * 8, 1000):
            rot(local_copy(blocks, ref), bit)
        assert table.column("n").to_pylist() == list(range(1000))

    def test_reading_for_an_update_does_not_check_what_was_checked(
        self, blocks: LocalBlocks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An epoch opens all of its state: that must not cost a look at every byte."""
        ref = write(blocks)
        monkeypatch.setattr(local, "checksum", lambda data: pytest.fail("checked again"))
        assert [blocks.local(ref), blocks.open(ref)] == [TABLE, TABLE]

    def test_a_file_that_was_written_to_or_replaced_is_verified_again(self, blocks: LocalBlocks) -> None:
        ref = write(blocks)
        blocks.open(ref)
        flip(local_copy(blocks, ref), 4000)
        assert blocks.open(ref) == TABLE
        shutil.copyfile(local_copy(blocks, write(blocks, pa.table({"n": [1]}))), local_copy(blocks, ref))
        assert blocks.open(ref) == TABLE
