"""Where rows go. Publishing is idempotent by epoch: a repeated epoch changes nothing."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console as Terminal
from rich.table import Table

from springtide import faults
from springtide.blocks.store import open_store
from springtide.confidential import Discreet, remember_url
from springtide.dataflow.kafka_sink import KafkaSink, kafka
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

    def each_part(self, function: Callable[[int, pa.Table], None]) -> list[int]:
        """Call a function on the workers with the number and the rows of each part that has rows; their numbers."""


class SinkSpec(Protocol):
    """A sink."""

    def publish(self, output: EpochOutput) -> None:
        """Make an epoch's rows visible; may be called again for the last epoch after a crash."""


@dataclass(frozen=True, repr=False)
class Parquet(Discreet):
    """A Parquet dataset in directories `epoch=N`; part files have fixed names, so a repeat replaces them."""

    path: str

    def __post_init__(self) -> None:
        remember_url(self.path)

    def publish(self, output: EpochOutput) -> None:
        store, directory = open_store(self.path), f"epoch={output.epoch}"
        # A relative path means another place on a worker, so workers get the store's own, absolute one.
        written = {_part_name(part) for part in output.each_part(partial(_write_part, store.url, output.epoch))}
        # An epoch whose manifest was torn is computed anew, and may come in fewer parts than before.
        stale = [name for name in store.list(directory) if _PART.fullmatch(name) and name not in written]
        store.delete(f"{directory}/{name}" for name in stale)


_PART = re.compile(r"part-\d{5,}\.parquet")


def _part_name(part: int) -> str:
    return f"part-{part:05d}.parquet"


def _write_part(store: str, epoch: int, part: int, rows: pa.Table) -> None:
    """Write one part file; runs on a worker."""
    buffer = io.BytesIO()
    pq.write_table(rows, buffer)
    open_store(store).put(f"epoch={epoch}/{_part_name(part)}", buffer.getbuffer())
    faults.fire("publish.part", epoch)


@dataclass
class Memory:
    """Rows kept in this process by epoch, for tests and notebooks."""

    epochs: dict[int, pa.Table] = field(default_factory=dict)

    def publish(self, output: EpochOutput) -> None:
        self.epochs[output.epoch] = output.table()

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by epoch."""
        return [row for epoch in sorted(self.epochs) for row in self.epochs[epoch].to_pylist()]


@dataclass(frozen=True)
class ForeachEpoch:
    """A user's function of (DataFrame, epoch); after a crash it may see the last epoch again."""

    function: "Callable[[DataFrame, int], None]"

    def publish(self, output: EpochOutput) -> None:
        self.function(output.dataframe(), output.epoch)


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


def parquet(path: str) -> Parquet:
    """A plain Parquet dataset with the epoch as a column, at a path or an fsspec URL."""
    return Parquet(path)


def memory() -> Memory:
    """Keep the rows in this process; read them with `.rows()`."""
    return Memory()


def foreach_epoch(function: "Callable[[DataFrame, int], None]") -> ForeachEpoch:
    """Call a function with each epoch's DataFrame and number; make it idempotent by the number."""
    return ForeachEpoch(function)


def noop() -> Noop:
    """Publish nowhere; for measurements."""
    return Noop()
