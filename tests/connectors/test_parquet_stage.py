"""Where the epochs of a Parquet dataset wait until they are whole."""

import errno
import os
from pathlib import Path

import pytest
from parquet_kit import Output, seen, whole

from springtide import sinks
from springtide.connectors.parquet.directory import NoStage
from springtide.connectors.sinks import Parquet


def test_a_stage_on_another_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    elsewhere = sinks.parquet(str(tmp_path / "out"), stage=str(other / f"springtide-test-{os.getpid()}"))
    with pytest.raises(NoStage, match=r"same file system .* another file system\. Name another one with .*stage="):
        elsewhere.check(None)
    assert not (tmp_path / "out").exists()


def test_a_mount_that_looks_like_one_file_system_is_told(
    out: Path, sink: Parquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bind mount has the same device number, and no rename into it."""

    def rename(source: Path, target: Path) -> None:
        if Path(target).parent == out:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        os.replace(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(NoStage, match="on another file system"):
        sink.publish(Output(0, ["a"]))


def test_a_stage_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NoStage, match="Not a directory"):
        sinks.parquet(str(tmp_path / "out"), stage=str(tmp_path / "file" / "stage")).publish(Output(0, ["a"]))


def test_a_dataset_behind_a_link_is_staged_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    sinks.parquet(str(tmp_path / "link")).publish(Output(0, ["a"]))
    assert (tmp_path / ".real.springtide").is_dir()
    assert seen(tmp_path / "real") == whole("a")
