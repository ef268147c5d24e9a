"""Where rows go. Publishing is idempotent by epoch: a repeated epoch changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from rich.console import Console as Terminal
from rich.table import Table

from springtide.dataflow.foreach import ForeachEpoch, foreach_epoch
from springtide.dataflow.kafka_sink import KafkaSink, kafka
from springtide.dataflow.parquet import Parquet, parquet
from springtide.dataflow.postgres import postgres

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "Console", "EpochOutput", "ForeachEpoch", "KafkaSink", "Memory", "Noop", "Parquet", "SinkSpec", "console",
    "foreach_epoch", "kafka", "memory", "noop", "parquet", "postgres",
]  # fmt: skip


class EpochOutput(Protocol):
    """An epoch's committed rows for one sink; the same rows however often it is asked."""

    epoch: int
    sink: str
    key: tuple[str, ...]
    schema: pa.Schema
    lineage: str
    """Of the checkpoint, which no other has: the same epoch of another lineage has other rows."""
    generation: int
    """Of the driver that publishes; one that was taken over has a smaller one than its successor."""

    def dataframe(self) -> "DataFrame":
        """The rows as a DataFrame."""

    def table(self) -> pa.Table:
        """The rows as one Arrow table, on the driver."""

    def top(self, column: str, n: int) -> pa.Table:
        """The n rows with the greatest values of a column, on the driver."""

    def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
        """Call a function on the workers with the number and the rows of each part that has rows; their numbers.

        With `parts`, rows go to that many parts by the hash of their key: a part then has the same rows however the
        epoch was computed.
        """


class SinkSpec(Protocol):
    """A sink.

    It may also have `check(lineage)`, which raises an error before the first epoch if it would fail then (the lineage
    is None for a checkpoint that is new), and `place`: no two sinks of an app may have the same one.
    """

    def publish(self, output: EpochOutput) -> None:
        """Make an epoch's rows visible; may be called again for the last epoch after a crash."""


@dataclass
class Memory:
    """Rows kept in this process by epoch, for tests and notebooks."""

    epochs: dict[int, pa.Table] = field(default_factory=dict)

    def publish(self, output: EpochOutput) -> None:
        self.epochs[output.epoch] = output.table()

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by epoch."""
        return [row for epoch in sorted(self.epochs) for row in self.epochs[epoch].to_pylist()]


@dataclass
class Console:
    """The rows with the greatest values of a column, as a table in the terminal."""

    top: int
    by: str
    terminal: Terminal | None = field(default_factory=Terminal)
    """Where to print; None only remembers the rows for whoever asks for `best`."""
    _latest: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict, init=False)

    def publish(self, output: EpochOutput) -> None:
        for row in output.top(self.by, self.top).to_pylist():
            self._latest[tuple(row[name] for name in output.key)] = row
        self._latest = {tuple(row[name] for name in output.key): row for row in self.best()}
        if self.terminal is not None and self._latest:
            self.terminal.print(self.render(f"{output.sink}, epoch {output.epoch}"))

    def best(self) -> list[dict[str, Any]]:
        """The best rows seen, best first."""
        known = [row for row in self._latest.values() if row[self.by] is not None]
        return sorted(known, key=lambda row: row[self.by], reverse=True)[: self.top]

    def render(self, title: str) -> Table:
        rows = self.best()
        table = Table(title=title, title_justify="left")
        for name in rows[0] if rows else ():
            table.add_column(name, justify="right" if isinstance(rows[0][name], int | float) else "left")
        for row in rows:
            table.add_row(*(str(value) for value in row.values()))
        return table


@dataclass(frozen=True)
class Noop:
    """Computes and commits every epoch, and publishes it nowhere."""

    def publish(self, output: EpochOutput) -> None:
        """Nothing to do: the epoch's output is committed."""


def console(*, top: int = 10, by: str) -> Console:
    """Print the `top` rows by a column after each epoch."""
    return Console(top, by)


def memory() -> Memory:
    """Keep the rows in this process; read them with `.rows()`."""
    return Memory()


def noop() -> Noop:
    """Publish nowhere; for measurements."""
    return Noop()
