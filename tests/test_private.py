"""Directories that are made here are for their owner alone; those of others stay as they are."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from springtide.blocks.block import RUN
from springtide.blocks.local import LocalBlocks
from springtide.blocks.store import LocalStore
from springtide.control.api.owner_file import write_owner_file
from springtide.ids import Epoch, InstanceId
from springtide.private import make_private
from springtide.scratch import scratch


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    """Nothing but the code itself keeps others out."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_that_is_missing_is_made_for_the_owner_alone(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private(there / "a" / "b")
    make_private(there / "a" / "b")
    assert [mode(there / "a"), mode(there / "a" / "b")] == [0o700, 0o700]
    assert mode(there) == 0o755
    make_private(there)
    assert mode(there) == 0o755, "it is the user's"


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")


def test_what_is_temporary(tmp_path: Path) -> None:
    with scratch("test") as path:
        assert mode(path) == 0o700


def test_where_an_app_leaves_its_address(tmp_path: Path) -> None:
    write_owner_file(tmp_path / "app" / "control.json", b"{}")
    assert mode(tmp_path / "app") == 0o700
    assert mode(tmp_path / "app" / "control.json") == 0o600


def test_where_a_worker_keeps_its_blocks(tmp_path: Path) -> None:
    blocks = LocalBlocks(tmp_path / "workers" / "one", LocalStore(tmp_path / "checkpoint"))
    blocks.write(pa.table({"n": [1]}), operator="o", epoch=Epoch(1), instance=InstanceId(0), kind=RUN)
    assert [mode(tmp_path / "workers"), mode(tmp_path / "workers" / "one")] == [0o700, 0o700]
