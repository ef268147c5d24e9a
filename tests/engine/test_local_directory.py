"""Each app has a directory of its own for blocks, in whatever directory workers are given."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from springtide.blocks.leftovers import driver_name
from springtide.blocks.local import LocalBlocks
from springtide.blocks.store import open_store
from springtide.engine.lifecycle.local_directory import blocks_directory
from springtide.engine.worker.cleanup import Housekeeping, Leftovers
from springtide.engine.worker.task_context import Storage
from springtide.ids import BadName, Epoch, InstanceId


def test_another_app_or_another_checkpoint_has_another_directory() -> None:
    found = {
        blocks_directory("/local", app, checkpoint)
        for app in ("clicks", "orders")
        for checkpoint in ("/cp/a", "/cp/b", "s3://bucket/a")
    }
    assert len(found) == 6
    assert {str(Path(path).parent) for path in found} == {"/local"}


def test_the_next_driver_finds_what_the_last_one_left(tmp_path: Path) -> None:
    url = open_store(str(tmp_path / "cp")).url
    assert blocks_directory("/local", "clicks", url) == blocks_directory("/local", "clicks", str(tmp_path / "cp"))
    assert open_store(f"file://{tmp_path}/cp").url == url


@pytest.mark.parametrize("name", ["../clicks", "a/b", "", "x" * 81])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(BadName):
        blocks_directory("/local", name, "/cp")


def test_two_apps_with_the_same_directory_leave_each_others_blocks_alone(tmp_path: Path) -> None:
    """A driver that starts tidies away what its own checkpoint does not need."""
    storages = [
        Storage(blocks_directory(str(tmp_path / "local"), app, str(tmp_path / app)), str(tmp_path / app))
        for app in ("clicks", "orders")
    ]
    blocks: list[LocalBlocks] = [storage.open() for storage in storages]
    rows = pa.table({"n": [1]})
    kept, left = (
        each.write(rows, operator="count", epoch=Epoch(1), instance=InstanceId(0), kind="run", durable=False)
        for each in blocks
    )
    later = replace(storages[1], driver=driver_name(2))
    Housekeeping(leftovers=Leftovers(Epoch(5), frozenset()))(later, later.open())
    assert blocks[0].local(kept) is not None
    assert blocks[1].local(left) is None, "its own leftovers are found"
