import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console as Terminal

from springtide import sinks
from springtide.connectors.foreach_epoch import NoSinkFunction
from springtide.connectors.sinks import Console


@dataclass
class FakeOutput:
    """An epoch's rows, without Spark."""

    epoch: int
    rows: pa.Table
    sink: str = "out"
    key: tuple[str, ...] = ("word",)
    generation: int = 1

    def table(self) -> pa.Table:
        return self.rows

    def dataframe(self) -> pa.Table:
        return self.rows

    def top(self, column: str, n: int) -> pa.Table:
        return self.rows.sort_by([(column, "descending")]).slice(0, n)


def counts(**n: int) -> pa.Table:
    schema = pa.schema([("word", pa.string()), ("n", pa.int64())])
    return pa.table({"word": list(n), "n": list(n.values())}, schema=schema)


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


def test_foreach_gets_the_generation_if_it_asks_for_it() -> None:
    seen: list[tuple[Any, ...]] = []

    class Callee:
        def __call__(self, rows: Any, epoch: int, generation: int) -> None:
            seen.append((epoch, generation))

    def bound(rows: Any, epoch: int, to: str = "there") -> None:
        seen.append((epoch, to))

    def by_name(rows: Any, epoch: int, generation: int | None = None) -> None:
        seen.append((epoch, generation))

    for function in (Callee(), Callee().__call__, bound, by_name, lambda *given: seen.append(given[1:])):
        sinks.foreach_epoch(function).publish(FakeOutput(4, counts(a=1), generation=7))
    assert seen == [(4, 7), (4, 7), (4, "there"), (4, 7), (4,)]


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda: None, r"<lambda>\(\): too many"),
        (lambda rows: None, r"<lambda>\(rows\): too many"),
        (lambda rows, epoch, generation, more: None, r"\(rows, epoch, generation, more\): missing .*'more'"),
        (lambda rows, epoch, *, generation: None, "missing .*'generation'"),
        ("append", "'append'"),
    ],
)
def test_foreach_refuses_functions_of_another_shape(function: Callable[..., None], got: str) -> None:
    expected = rf"expected a function of \(df, epoch\) or \(df, epoch, generation\), got {got}|{got}"
    with pytest.raises(NoSinkFunction, match=expected) as refused:
        sinks.foreach_epoch(function)
    assert "foreach_epoch" in str(refused.value)
