"""The Parquet sink on a disk: an epoch appears whole or not at all, once, and is one checkpoint's own."""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from parquet_kit import Output, files, seen, whole, words

from springtide import faults, sinks
from springtide.blocks.errors import StoreFailed, TakenOver
from springtide.connectors.parquet.directory import Directory
from springtide.connectors.sinks import Parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Killed(BaseException):
    """As if the process had been killed there."""


def kill(part: int) -> None:
    raise Killed


def stages(out: Path) -> list[str]:
    """What lies in the stage."""
    return sorted(path.name for path in Directory.at(str(out), None).stage.iterdir())


def test_a_plain_dataset_that_repeats_do_not_change(out: Path, sink: Parquet) -> None:
    for epoch in (Output(0, ["ab", "c"]), Output(1, ["a"]), Output(2, [])):
        sink.publish(epoch)
    before = files(out)
    read = ds.dataset(out, partitioning="hive").to_table().to_pylist()
    assert sorted((r["epoch"], r["word"]) for r in read) == [(0, "a"), (0, "b"), (0, "c"), (1, "a")]
    # The same rows in other parts, as of an epoch that was computed anew; by a later driver, too.
    for epoch in (Output(0, ["abc"]), Output(1, ["", "", "a"]), Output(2, []), Output(1, ["a"], generation=2)):
        sink.publish(epoch)
    assert {n: b for n, b in files(out).items() if n.startswith("epoch=")} == {
        n: b for n, b in before.items() if n.startswith("epoch=")
    }
    assert (seen(out), stages(out)) == (whole("abc", "a"), [])
    assert not (out / "epoch=2").exists()


def test_parts_are_written_where_the_driver_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers stand elsewhere: a relative path is the driver's."""

    class Elsewhere(Output):
        def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
            monkeypatch.chdir(tmp_path / "worker")
            try:
                return super().each_part(function)
            finally:
                monkeypatch.chdir(tmp_path)

    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path)
    sinks.parquet("out").publish(Elsewhere(0, ["a", "b"]))
    assert seen(tmp_path / "out") == whole("ab")
    assert not list((tmp_path / "worker").iterdir())


def readers(out: Path) -> dict[str, dict[int, int]]:
    """By reader, the number of rows it sees of each epoch."""
    counted = {}
    for glob in ("**/*.parquet", "*/*.parquet", "epoch=*/*.parquet"):
        rows = f"read_parquet('{out}/{glob}', hive_partitioning=true)"
        counted[glob] = dict(duckdb.sql(f"SELECT epoch, count(*) FROM {rows} GROUP BY epoch").fetchall())
    epochs = ds.dataset(out, partitioning="hive").to_table()["epoch"].to_pylist()
    return counted | {"arrow": dict(Counter(epochs))}


def test_no_reader_sees_what_is_staged_or_was_left_behind(
    out: Path, sink: Parquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB's globs find hidden files, and files below hidden directories."""
    sink.publish(Output(0, ["ab", "c"]))
    looks = []

    def die(point: str, epoch: int) -> None:
        looks.append(readers(out))
        if point == "publish.staged":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(faults, "fire", die)
        with pytest.raises(Killed):
            sink.publish(Output(1, ["d", "e"]))
    assert len(stages(out)) == 1
    sink.publish(Output(1, ["d", "e"], meanwhile=lambda part: looks.append(readers(out))))
    assert len(looks) == 5
    assert all(counted == {0: 3} for look in looks for counted in look.values())
    assert all(counted == {0: 3, 1: 2} for counted in readers(out).values())


@pytest.mark.spark
def test_spark_reads_the_dataset_and_nothing_else(spark: "SparkSession", out: Path, sink: Parquet) -> None:
    sink.publish(Output(0, ["ab", "c"]))
    with pytest.raises(Killed):
        sink.publish(Output(1, ["d", "e"], meanwhile=kill))
    rows = spark.read.parquet(str(out))
    assert rows.columns == ["word", "n", "epoch"]
    assert sorted(tuple(row) for row in rows.select("epoch", "word").collect()) == [(0, "a"), (0, "b"), (0, "c")]


def test_what_was_cut_short_is_removed_by_the_next_driver_and_never_a_newer_one_s(out: Path, sink: Parquet) -> None:
    with pytest.raises(Killed):
        sink.publish(Output(0, ["a", "b"], generation=1, meanwhile=kill))
    with pytest.raises(Killed):
        sink.publish(Output(0, ["a", "b"], generation=3, meanwhile=kill))
    directory = Directory.at(str(out), None)
    assert len(stages(out)) == 2
    directory.publish(Output(0, ["ab"], generation=2))
    (left,) = stages(out)
    assert left.split("-")[2] == "3"
    sink.publish(Output(1, ["c"], generation=3))
    assert stages(out) == []
    assert seen(out) == whole("ab", "c")


def test_a_stage_may_be_shared_and_holds_what_others_have_staged(tmp_path: Path) -> None:
    """Also after the dataset of another checkpoint was removed: what that one left goes."""
    stage = str(tmp_path / "stage")
    one, two = (sinks.parquet(str(tmp_path / name), stage=stage) for name in ("one", "two"))
    with pytest.raises(Killed):
        one.publish(Output(0, ["a", "b"], generation=9, meanwhile=kill))
    two.publish(Output(0, ["c"], lineage="two"))
    assert len(list(Path(stage).iterdir())) == 1
    shutil.rmtree(tmp_path / "one")
    one.publish(Output(0, ["d"], lineage="another"))
    assert (seen(tmp_path / "one"), seen(tmp_path / "two")) == (whole("d"), whole("c"))
    assert not list(Path(stage).iterdir())


@pytest.mark.parametrize("late", [["abcd"], ["ab", "cd"], ["a", "b", "c", "d", ""]])
def test_a_late_driver_comes_at_any_moment_of_its_successor(out: Path, sink: Parquet, late: list[str]) -> None:
    """It goes on after each of the successor's parts in turn, and after its epochs."""
    for epoch in range(3):

        def interrupt(part: int, epoch: int = epoch) -> None:
            if part == epoch:
                with pytest.raises(TakenOver, match="generation 2"):
                    sink.publish(Output(epoch, late, generation=1))
                # As if it had come past the check before it was paused.
                Directory.at(str(out), None).publish(Output(epoch, late, generation=1))

        sink.publish(Output(epoch, ["a", "bc", "", "d"], generation=2, meanwhile=interrupt))
    for epoch in range(3):
        Directory.at(str(out), None).publish(Output(epoch, late, generation=1))
    assert seen(out) == whole("abcd", "abcd", "abcd")
    assert stages(out) == []


def test_a_stage_that_the_successor_has_removed_is_never_half_an_epoch(out: Path, sink: Parquet) -> None:
    """A worker of the late driver writes on, and makes nothing anew."""
    late = Output(0, ["a", "b", "c"], generation=1)

    def successor(part: int) -> None:
        if part == 1:
            sink.publish(Output(1, ["d"], generation=2))

    late.meanwhile = successor
    with pytest.raises(TakenOver, match="generation 1"):
        sink.publish(late)
    with pytest.raises(StoreFailed, match=r"stage is not there; the driver and every worker must see it"):
        late.write(2, words("c"))
    assert seen(out) == {1: whole("d")[0]}
    sink.publish(Output(0, ["abc"], generation=2))
    assert seen(out) == whole("abc", "d")


def test_a_twin_of_a_task_that_comes_after_the_epoch_changes_nothing(out: Path, sink: Parquet) -> None:
    output = Output(0, ["a", "b"])
    output.meanwhile = lambda part: output.write(0, words("a"))
    sink.publish(output)
    before = files(out)
    with pytest.raises(StoreFailed):
        output.write(0, words("a"))
    assert (seen(out), files(out)) == (whole("ab"), before)


def test_a_disk_that_is_full_is_told_and_the_epoch_appears_later(
    out: Path, sink: Parquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def full(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".tmp"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    sink.publish(Output(0, ["a"]))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match="No space left"):
            sink.publish(Output(1, ["b"]))
    (left,) = Directory.at(str(out), None).stage.iterdir()
    assert not files(left), "what is left of it would keep the disk full"
    sink.publish(Output(1, ["b"]))
    assert (seen(out), stages(out)) == (whole("a", "b"), [])


@pytest.mark.parametrize("call", ["fsync", "rename", "replace", "open"])
def test_a_disk_that_is_away_for_a_while_is_waited_for(
    out: Path, sink: Parquet, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real, left = getattr(os, call), [3]

    def away(*arguments: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **options)

    sink.publish(Output(0, ["a"]))
    with monkeypatch.context() as patched:
        patched.setattr(os, call, away)
        sink.publish(Output(1, ["b"]))
    assert (seen(out), stages(out), left) == (whole("a", "b"), [], [0])


def test_an_epoch_is_on_disk_before_it_appears_and_after(
    out: Path, sink: Parquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order: the parts, their directory, the rename, the dataset's directory."""
    sink.publish(Output(0, ["a"]))
    story: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def sync(descriptor: int) -> None:
        story.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).suffix or 'directory'}")
        real_sync(descriptor)

    def rename(source: Path, target: Path) -> None:
        if Path(target).parent == out:
            story.append("appears")
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", rename)
    sink.publish(Output(1, ["b", "c"]))
    assert story == ["sync .tmp", "sync .tmp", "sync directory", "appears", "sync directory"]
