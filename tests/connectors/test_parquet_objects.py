"""The Parquet sink in an object store: no rename, so a part is the same whoever writes it."""

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquet_kit import Output, whole

from springtide import sinks
from springtide.blocks.errors import TakenOver
from springtide.blocks.store import LocalStore, open_store
from springtide.connectors.parquet import objects
from springtide.connectors.parquet.owner import AnotherLineage, UnknownEpochs
from springtide.connectors.sinks import Parquet
from springtide.engine.epoch.sink_output import CommittedOutput
from springtide.engine.worker.task_context import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Killed(BaseException):
    """As if the process had been killed there."""


@pytest.fixture
def place() -> Iterator[str]:
    """A directory of its own in fsspec's memory file system."""
    name = f"/{uuid.uuid4().hex}"
    yield f"memory:/{name}/out"
    fsspec.filesystem("memory").rm(name, recursive=True)


@pytest.fixture
def sink(place: str) -> Parquet:
    return sinks.parquet(place)


def seen(place: str) -> dict[int, Counter[str]]:
    """By epoch, the words that a reader of the objects sees."""
    memory, found = fsspec.filesystem("memory"), dict[int, Counter[str]]()
    memory.invalidate_cache()
    for name in memory.glob(f"{place}/epoch=*/*.parquet"):
        with memory.open(name) as file:
            rows = pq.ParquetFile(file).read()["word"].to_pylist()
        found.setdefault(int(name.split("epoch=")[1].split("/")[0]), Counter()).update(rows)
    return found


def test_repeats_and_late_drivers_change_nothing(place: str, sink: Parquet) -> None:
    """In whatever parts they come, and at whatever moment of the successor's own writing."""
    sink.publish(Output(0, ["abcd", "efgh"], generation=1))
    sink.publish(Output(1, [], generation=1))
    sink.publish(Output(0, ["a", "b", "c", "d", "efgh"], generation=2))
    before = sorted(fsspec.filesystem("memory").find(place))
    assert 1 < sum("/epoch=0/" in name for name in before) <= objects.PARTS
    with pytest.raises(TakenOver, match=r"generation 1.*generation 2"):
        sink.publish(Output(0, ["abcdefgh"], generation=1))

    def late(part: int) -> None:
        # As if it had come past the check before it was paused.
        objects.publish(open_store(place), Output(2, ["ij", "kl", "m"], generation=1))

    sink.publish(Output(2, ["ijkl", "m"], generation=2, meanwhile=late))
    late(0)
    assert seen(place) == whole("abcdefgh", "", "ijklm")
    assert sorted(n for n in fsspec.filesystem("memory").find(place) if "/epoch=2/" not in n) == before


def test_an_attempt_that_was_killed_is_replaced(place: str, sink: Parquet) -> None:
    def kill(part: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        sink.publish(Output(0, ["abcdefgh"], meanwhile=kill))
    assert sum(seen(place)[0].values()) < 8
    sink.publish(Output(0, ["abcd", "efgh"], generation=2))
    assert seen(place) == whole("abcdefgh")


def test_parts_that_do_not_belong_there_are_removed(place: str, sink: Parquet) -> None:
    sink.publish(Output(0, ["abc"]))
    memory = fsspec.filesystem("memory")
    (first, *_) = memory.glob(f"{place}/epoch=0/*.parquet")
    memory.copy(first, f"{place}/epoch=0/part-00017.parquet")
    memory.pipe_file(f"{place}/epoch=0/_SUCCESS", b"")
    sink.publish(Output(0, ["abc"]))
    assert seen(place) == whole("abc")
    assert memory.exists(f"{place}/epoch=0/_SUCCESS")


def test_a_dataset_is_one_checkpoint_s_own(place: str, sink: Parquet) -> None:
    sink.check(None)
    sink.publish(Output(0, ["a"]))
    for lineage in (None, "another"):
        with pytest.raises(AnotherLineage):
            sink.check(lineage)
    with pytest.raises(AnotherLineage):
        sink.publish(Output(0, ["b"], lineage="another"))
    sink.check("one")
    assert seen(place) == whole("a")


def test_epochs_of_an_earlier_release(place: str, sink: Parquet) -> None:
    """Those before the one that is published are taken over with the dataset."""
    sink.publish(Output(0, ["a"]))
    sink.publish(Output(1, ["b"]))
    fsspec.filesystem("memory").rm(f"{place}/_springtide", recursive=True)
    with pytest.raises(UnknownEpochs, match=r"no epoch from 0 on.*'epoch=1'"):
        sink.publish(Output(0, ["a"]))
    sink.publish(Output(2, ["c"]))
    assert seen(place) == whole("a", "b", "c")


@pytest.mark.spark
def test_a_part_is_the_same_however_the_epoch_was_computed(spark: "SparkSession", tmp_path: Path) -> None:
    """Nulls and keys of several columns among them."""
    schema = pa.schema([("user", pa.string()), ("day", pa.date32()), ("n", pa.int64())])
    found = [(f"u{n % 7}" if n % 5 else None, date(2026, 1, 1 + n % 3), n) for n in range(300)]
    parts = []
    for partitions in (1, 5):
        frame = spark.createDataFrame(found, "user STRING, day DATE, n LONG").repartition(partitions)
        output = CommittedOutput(
            0, "out", ("user", "day"), schema, lambda frame=frame: frame, None, Storage("", ""), "one", 1
        )
        objects.publish(LocalStore(tmp_path / str(partitions)), output)
        files = (tmp_path / str(partitions) / "epoch=0").glob("*.parquet")
        parts.append({file.name: sorted(pq.ParquetFile(file).read()["n"].to_pylist()) for file in files})
    assert parts[0] == parts[1]
    assert len(parts[0]) == objects.PARTS
    assert sorted(n for numbers in parts[0].values() for n in numbers) == list(range(300))
