"""Epochs for the PostgreSQL sink without Spark, and questions to the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])
Rows = Sequence[tuple[Any, ...]]


@dataclass
class Output:
    """An epoch's rows in two parts, without Spark."""

    epoch: int
    rows: Rows = ()
    schema: pa.Schema = field(default=SCHEMA)
    sink: str = "out"
    lineage: str = "app/1"
    key: tuple[str, ...] = ("word",)
    generation: int = 1
    meanwhile: Callable[[], None] = field(default=lambda: None)
    """Called when the first part is written, and the second is not."""
    write: Any = None

    def table(self, rows: Rows | None = None) -> pa.Table:
        names = self.schema.names
        return pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in rows or self.rows], schema=self.schema)

    def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
        self.write = function
        half = (len(self.rows) + 1) // 2
        filled = {n: rows for n, rows in enumerate((self.rows[:half], self.rows[half:])) if rows}
        for number, rows in filled.items():
            function(number, self.table(rows))
            if number == 0:
                self.meanwhile()
        return list(filled)

    def dataframe(self) -> Any:
        raise NotImplementedError

    def top(self, column: str, n: int) -> pa.Table:
        raise NotImplementedError


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def tables(dsn: str) -> set[str]:
    return {name for (name,) in ask(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}


def recorded(dsn: str) -> list[tuple[str, str, int]]:
    return sorted(ask(dsn, "SELECT lineage, sink, epoch FROM springtide_epochs"))  # type: ignore[arg-type]
