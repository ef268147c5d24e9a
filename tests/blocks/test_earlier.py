"""What a driver may clear: what lay in a worker's directory before its first task came there, and nothing else."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from springtide.blocks import leftovers
from springtide.blocks.block import PART, RUN, BlockRef
from springtide.blocks.leftovers import driver_name
from springtide.blocks.local import LocalBlocks
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.ids import Epoch, InstanceId

OLD, NEW = driver_name(7), driver_name(12)
HEAD = Epoch(50)


def task(root: Path, driver: str) -> LocalBlocks:
    """A task of a driver on the worker."""
    return LocalBlocks(root / "worker", LocalStore(root / "durable"), "1", driver=driver)


def write(blocks: LocalBlocks, kind: str = PART, epoch: int = 40) -> BlockRef:
    """A block with the number of an old epoch, as replicas of old runs have it."""
    table = pa.table({"n": [1]})
    return blocks.write(
        table,
        operator="counts",
        epoch=Epoch(epoch),
        instance=InstanceId(0),
        kind=kind,
        slices=SliceSet.parse("0"),
        durable=False,
    )


def there(root: Path) -> set[str]:
    return {path.name for path in (root / "worker").glob("*.arrow")}


def test_a_driver_clears_what_others_left_and_nothing_of_its_own(tmp_path: Path) -> None:
    before = task(tmp_path, OLD)
    needed, left = write(before, RUN), write(before)
    task(tmp_path, NEW).tidy(HEAD, {needed.name})
    assert there(tmp_path) == {needed.name}
    mine = write(task(tmp_path, NEW))
    for _ in range(3):  # Later levels of the same epoch, and retries of it.
        task(tmp_path, NEW).tidy(HEAD, {needed.name})
    assert there(tmp_path) == {needed.name, mine.name}
    task(tmp_path, driver_name(13)).tidy(HEAD, {needed.name})
    assert there(tmp_path) == {needed.name}, "for the next driver it is left by another"
    assert left.name != mine.name


def test_what_is_written_before_anybody_has_tidied_is_safe_too(tmp_path: Path) -> None:
    """A replica may come to a worker that has had no task of the epoch yet."""
    left = write(task(tmp_path, OLD))
    mine = write(task(tmp_path, NEW))
    task(tmp_path, NEW).tidy(HEAD, set())
    assert there(tmp_path) == {mine.name} != {left.name}


def test_a_task_that_looks_while_another_has_begun_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes come at once; one lists the directory only after the other has noted and written."""
    write(task(tmp_path, OLD))
    listdir, mine = os.listdir, []

    def slow(path: Any) -> list[str]:
        monkeypatch.setattr(leftovers.os, "listdir", listdir)
        mine.append(write(task(tmp_path, NEW)))
        return listdir(path)

    monkeypatch.setattr(leftovers.os, "listdir", slow)
    task(tmp_path, NEW).tidy(HEAD, set())
    assert there(tmp_path) == {mine[0].name}


def test_many_tasks_at_once(tmp_path: Path) -> None:
    old = [write(task(tmp_path, OLD)) for _ in range(20)]

    def work(number: int) -> str:
        blocks = task(tmp_path, NEW)
        blocks.tidy(HEAD, set())
        name = write(blocks).name
        task(tmp_path, NEW).tidy(HEAD, set())
        return name

    with ThreadPoolExecutor(8) as pool:
        mine = set(pool.map(work, range(40)))
    assert there(tmp_path) == mine
    assert not mine & {ref.name for ref in old}


def test_notes_of_earlier_drivers_go_and_a_zombie_s_task_takes_nothing(tmp_path: Path) -> None:
    task(tmp_path, OLD)
    mine = write(task(tmp_path, NEW))
    task(tmp_path, OLD)  # It lists the directory anew, ours included.
    task(tmp_path, NEW).tidy(HEAD, set())
    assert there(tmp_path) == {mine.name}
    marks = [path.name for path in (tmp_path / "worker").glob(".before.*")]
    assert f".before.{NEW}" in marks
    task(tmp_path, driver_name(13))
    assert len(list((tmp_path / "worker").glob(".before.*"))) == 1
    assert not list((tmp_path / "worker").glob(".*.tmp"))


def test_a_worker_without_a_directory_has_nothing_to_clear(tmp_path: Path) -> None:
    blocks = LocalBlocks(tmp_path / "nowhere", LocalStore(tmp_path), keep=False)
    blocks.tidy(HEAD, set())
    assert not (tmp_path / "nowhere").exists()
