"""Whose a Parquet dataset is: one checkpoint's, that of its first epoch."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from parquet_kit import Output, files, seen, whole, words

from springtide.blocks.errors import NewerFormat
from springtide.blocks.store import LocalStore
from springtide.connectors.parquet.owner import AnotherLineage, UnknownEpochs, enter
from springtide.connectors.sinks import Parquet


def test_another_checkpoint_is_refused_before_and_at_its_first_epoch(out: Path, sink: Parquet) -> None:
    sink.check(None)
    assert not out.exists()
    for epoch in range(3):
        sink.publish(Output(epoch, ["a"], lineage="old"))
    before = files(out)
    said = r"'.*/out' to be empty or written by this app's checkpoint \({}\), got .* checkpoint old: give .*path"
    for lineage, told in ((None, "a new one"), ("new", "checkpoint new")):
        with pytest.raises(AnotherLineage, match=said.format(told)):
            sink.check(lineage)
    with pytest.raises(AnotherLineage, match=said.format("checkpoint new")):
        sink.publish(Output(0, ["b"], lineage="new"))
    sink.check("old")
    assert files(out) == before


class Overtaken(LocalStore):
    """Somebody else publishes an epoch after this many calls of ours."""

    def __init__(self, root: Path, calls: int, publish: Callable[[], None]) -> None:
        super().__init__(root)
        self.calls, self.publish = calls, publish

    def get(self, name: str) -> bytes:
        self._count()
        return super().get(name)

    def list(self, prefix: str) -> list[str]:
        self._count()
        return super().list(prefix)

    def put_if_absent(self, name: str, data: bytes) -> None:
        self._count()
        super().put_if_absent(name, data)

    def _count(self) -> None:
        self.calls -= 1
        if self.calls == 0:
            self.publish()


@pytest.mark.parametrize("calls", range(1, 5))
def test_a_driver_that_another_one_overtakes_at_any_call_knows_whose_the_dataset_is(
    out: Path, sink: Parquet, calls: int
) -> None:
    """One of the same checkpoint finds it its own, one of another does not, in whatever order they come."""
    store = Overtaken(out, calls, lambda: sink.publish(Output(0, ["a"], generation=1)))
    enter(store, "one", 2, 0)
    shutil.rmtree(out)
    store = Overtaken(out, calls, lambda: sink.publish(Output(0, ["a"], lineage="another")))
    # Calls: its own record, the epochs, its own record put; after that the dataset is taken.
    with pytest.raises(AnotherLineage) as refused:
        enter(store, "one", 1, 0)
    assert refused.value.expected == ("one" if calls <= 3 else "another")
    assert seen(out) == (whole("a") if calls <= 3 else {})


def earlier_release(out: Path, epochs: int) -> None:
    """What it wrote: parts, and nothing that says whose they are."""
    for epoch in range(epochs):
        (out / f"epoch={epoch}").mkdir(parents=True)
        pa.parquet.write_table(words("a"), out / f"epoch={epoch}" / "part-00000.parquet")


def test_a_dataset_of_an_earlier_release_goes_on(out: Path, sink: Parquet) -> None:
    earlier_release(out, 2)
    sink.check("one")
    sink.publish(Output(2, ["b"]))
    assert seen(out) == whole("a", "a", "b")
    with pytest.raises(AnotherLineage):
        sink.check("another")


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_dataset_of_an_earlier_release_with_epochs_that_are_not_ours_is_refused(
    out: Path, sink: Parquet, epoch: int
) -> None:
    earlier_release(out, 3)
    before = files(out)
    with pytest.raises(UnknownEpochs, match=rf"no epoch from {epoch} on.*'epoch=2' from an earlier release"):
        sink.publish(Output(epoch, ["b"]))
    with pytest.raises(UnknownEpochs, match="no epoch from 0 on"):
        sink.check(None)
    assert files(out) == before


def test_an_epoch_that_an_earlier_release_may_have_written_in_part_is_told(out: Path, sink: Parquet) -> None:
    earlier_release(out, 3)
    with pytest.raises(UnknownEpochs, match=r"removing 'epoch=2' in it is enough: it is written again"):
        sink.publish(Output(2, ["b", "c"]))
    (out / "epoch=2" / "part-00000.parquet").unlink()
    (out / "epoch=2").rmdir()
    sink.publish(Output(2, ["b", "c"]))
    assert seen(out) == whole("a", "a", "bc")


def test_a_record_of_a_later_release_is_refused(out: Path, sink: Parquet) -> None:
    (out / "_springtide").mkdir(parents=True)
    (out / "_springtide" / "lineage.json").write_text('{"format": 2, "owners": []}')
    with pytest.raises(NewerFormat, match=r"lineage.json' in .* has format 2"):
        sink.publish(Output(0, ["a"]))
