import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from rich.console import Console as Terminal

from springtide import sinks
from springtide.dataflow.sinks import Console


@dataclass
class FakeOutput:
    """An epoch's rows in two parts, without Spark."""

    epoch: int
    rows: pa.Table
    sink: str = "out"
    key: tuple[str, ...] = ("word",)

    def table(self) -> pa.Table:
        return self.rows

    def dataframe(self) -> pa.Table:
        return self.rows

    def top(self, column: str, n: int) -> pa.Table:
        return self.rows.sort_by([(column, "descending")]).slice(0, n)

    def each_part(self, function: Callable[[int, pa.Table], None]) -> list[int]:
        half = self.rows.num_rows // 2
        function(0, self.rows.slice(0, half))
        function(1, self.rows.slice(half))
        return [0, 1]


def counts(**n: int) -> pa.Table:
    schema = pa.schema([("word", pa.string()), ("n", pa.int64())])
    return pa.table({"word": list(n), "n": list(n.values())}, schema=schema)


def test_parquet_is_a_plain_dataset_and_a_repeated_epoch_changes_nothing(tmp_path: Path) -> None:
    sink = sinks.parquet(str(tmp_path / "out"))
    for epoch, rows in [(0, counts(a=1, b=2)), (1, counts(a=3)), (1, counts(a=3)), (2, counts())]:
        sink.publish(FakeOutput(epoch, rows))
    read = ds.dataset(tmp_path / "out", partitioning="hive").to_table().to_pylist()
    assert sorted((r["epoch"], r["word"], r["n"]) for r in read) == [(0, "a", 1), (0, "b", 2), (1, "a", 3)]


def test_parquet_parts_are_written_where_the_driver_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers stand elsewhere: a relative path is the driver's."""

    class Elsewhere(FakeOutput):
        def each_part(self, function: Callable[[int, pa.Table], None]) -> list[int]:
            monkeypatch.chdir(tmp_path / "worker")
            try:
                return super().each_part(function)
            finally:
                monkeypatch.chdir(tmp_path)

    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path)
    sinks.parquet("out").publish(Elsewhere(0, counts(a=1, b=2)))
    assert ds.dataset(tmp_path / "out").count_rows() == 2
    assert not list((tmp_path / "worker").iterdir())


def test_memory_keeps_epochs_apart() -> None:
    sink = sinks.memory()
    sink.publish(FakeOutput(1, counts(b=2)))
    sink.publish(FakeOutput(0, counts(a=1)))
    sink.publish(FakeOutput(1, counts(b=2)))
    assert sink.rows() == [{"word": "a", "n": 1}, {"word": "b", "n": 2}]


def test_console_shows_the_newest_row_of_the_best_keys() -> None:
    out = io.StringIO()
    sink = Console(2, "n", Terminal(file=out, width=60))
    sink.publish(FakeOutput(0, counts(a=1, b=5, c=3)))
    sink.publish(FakeOutput(1, counts(a=9)))
    assert [(r["word"], r["n"]) for r in sink.best()] == [("a", 9), ("b", 5)]
    assert "out, epoch 1" in out.getvalue()


def test_foreach_gets_rows_and_epoch() -> None:
    seen: list[tuple[int, int]] = []
    sink = sinks.foreach_epoch(lambda rows, epoch: seen.append((epoch, rows.num_rows)))
    sink.publish(FakeOutput(4, counts(a=1)))
    assert seen == [(4, 1)]
