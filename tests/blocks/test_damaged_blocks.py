"""Damaged copies of blocks are found and mended from others; what nobody has is an error; nothing is unpickled."""

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from local_kit import TABLE, durable_copy, flip, local_copy, new_process, write

from springtide.blocks.block import BlockRef, checksum
from springtide.blocks.collect import Collector
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.local import LocalBlocks
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.ids import Epoch, PlanVersion


class TestDamage:
    @pytest.mark.parametrize("where", [0.0, 0.2, 0.5, 0.8, 1.0])
    def test_a_flipped_bit_in_the_local_copy_is_mended_from_the_durable_one(
        self, blocks: LocalBlocks, where: float
    ) -> None:
        ref = write(blocks)
        flip(local_copy(blocks, ref), int((ref.size_bytes * 8 - 1) * where))
        new_process()
        assert blocks.open(ref) == TABLE
        assert checksum(local_copy(blocks, ref).read_bytes()) == ref.crc32, "the local copy is whole again"

    @pytest.mark.parametrize("size", [0, 1, 100, -1])
    def test_a_cut_short_local_copy_is_mended(self, blocks: LocalBlocks, size: int) -> None:
        ref = write(blocks)
        os.truncate(local_copy(blocks, ref), size if size >= 0 else ref.size_bytes - 1)
        new_process()
        assert blocks.open(ref) == TABLE

    def test_a_wiped_worker_directory_is_mended(self, blocks: LocalBlocks) -> None:
        """Also within a process that had verified the blocks before."""
        refs = [write(blocks) for _ in range(3)]
        shutil.rmtree(blocks.directory)
        assert [blocks.open(ref) for ref in refs] == [TABLE] * 3
        shutil.rmtree(blocks.directory)
        new_process()
        assert [blocks.open(ref) for ref in refs] == [TABLE] * 3

    def test_another_worker_gets_it_from_the_durable_store(self, blocks: LocalBlocks, tmp_path: Path) -> None:
        ref = write(blocks)
        assert LocalBlocks(tmp_path / "other", blocks.durable).open(ref) == TABLE

    def test_a_flipped_bit_in_every_copy_is_an_error_that_says_what_is_lost(self, blocks: LocalBlocks) -> None:
        ref = write(blocks)
        flip(local_copy(blocks, ref), 999)
        flip(durable_copy(blocks, ref), 1001)
        new_process()
        with pytest.raises(BlockCorrupt) as caught:
            blocks.open(ref)
        error = caught.value
        assert (error.operator, error.slices, error.epoch, error.block) == ("counts", "0-3,9", 7, ref.name)
        assert "operator 'counts', slices 0-3,9" in str(error)
        assert "of epoch 7" in str(error)
        assert error.tried == ("local copy has the wrong checksum", "durable copy has the wrong checksum")
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), vars(copy)) == (str(error), vars(error)), "a worker can send it to the driver"

    def test_a_block_that_is_nowhere_is_an_error_that_says_so(self, blocks: LocalBlocks) -> None:
        ref = write(blocks)
        local_copy(blocks, ref).unlink()
        durable_copy(blocks, ref).unlink()
        with pytest.raises(BlockCorrupt, match=r"no local copy; no durable copy"):
            blocks.open(ref)

    def test_a_whole_block_of_another_attempt_does_not_pass_for_this_one(self, blocks: LocalBlocks) -> None:
        """Same name and same size, other content: only the checksum tells a stale copy."""
        old, new = write(blocks, pa.table({"n": [1, 2]})), write(blocks, pa.table({"n": [1, 3]}))
        assert old.size_bytes == new.size_bytes
        shutil.copyfile(local_copy(blocks, old), local_copy(blocks, new))
        new_process()
        assert blocks.open(new).column("n").to_pylist() == [1, 3]

    def test_a_damaged_durable_copy_does_not_matter_while_the_local_one_is_whole(self, blocks: LocalBlocks) -> None:
        ref = write(blocks)
        flip(durable_copy(blocks, ref), 5)
        new_process()
        assert blocks.open(ref) == TABLE


class Bomb:
    """A pickle of it writes a file when it is loaded."""

    def __init__(self, evidence: Path) -> None:
        self.evidence = evidence

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.evidence, "unpickled")


class TestPlantedPickles:
    @pytest.fixture
    def evidence(self, tmp_path: Path) -> Path:
        return tmp_path / "evidence"

    def test_the_bomb_works(self, evidence: Path) -> None:
        """Else the other tests would prove nothing."""
        pickle.loads(pickle.dumps(Bomb(evidence)))
        assert evidence.read_text() == "unpickled"

    def test_in_place_of_the_local_copy_it_is_replaced(self, blocks: LocalBlocks, evidence: Path) -> None:
        ref = write(blocks)
        local_copy(blocks, ref).write_bytes(pickle.dumps(Bomb(evidence)))
        new_process()
        assert blocks.open(ref) == TABLE
        assert not evidence.exists()

    def test_in_place_of_every_copy_it_is_an_error(self, blocks: LocalBlocks, evidence: Path) -> None:
        ref = write(blocks)
        for path in (local_copy(blocks, ref), durable_copy(blocks, ref)):
            path.write_bytes(pickle.dumps(Bomb(evidence)).ljust(ref.size_bytes, b"\0"))
        new_process()
        with pytest.raises(BlockCorrupt, match="wrong checksum"):
            blocks.open(ref)
        assert not evidence.exists()

    def test_even_with_the_right_checksum_it_is_no_arrow_file(self, blocks: LocalBlocks, evidence: Path) -> None:
        data = pickle.dumps(Bomb(evidence))
        ref = write(blocks)
        forged = BlockRef(ref.name, "counts", Epoch(7), 1, len(data), checksum(data), SliceSet.parse("0"))
        for path in (local_copy(blocks, ref), durable_copy(blocks, ref)):
            path.write_bytes(data)
        new_process()
        with pytest.raises(pa.ArrowInvalid):
            blocks.open(forged)
        assert not evidence.exists()

    @pytest.mark.parametrize("name", ["state.pkl", "counts.000000007.0.run.zz.arrow", "x.pickle.arrow", ".hidden"])
    def test_as_another_file_it_is_left_alone(self, blocks: LocalBlocks, evidence: Path, name: str) -> None:
        ref = write(blocks)
        planted = [blocks.directory / name, blocks.durable.root / "blocks" / name]  # type: ignore[attr-defined]
        for path in planted:
            path.write_bytes(pickle.dumps(Bomb(evidence)))
        new_process()
        assert blocks.open(ref) == TABLE
        manifest = Manifest("app", Epoch(0), "", PlanVersion(1), 1, {"counts": OperatorState((ref,))})
        ManifestLog(blocks.durable).commit(manifest, None)
        Collector(ManifestLog(blocks.durable)).start(ManifestLog(blocks.durable).head())
        assert not evidence.exists()
        assert all(path.exists() for path in planted)
