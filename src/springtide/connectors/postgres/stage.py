"""Where the parts of an epoch wait until one transaction makes all of them visible.

Workers copy their parts into an unlogged table whose name holds the driver's generation, the epoch and the attempt. A
part counts once its number is in a second table, in the same transaction: of two tasks that write one part, the later
one finds it there and takes its rows back. A task that outlives its attempt finds no table, or one that nobody reads.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from springtide import faults
from springtide.connectors.postgres.columns import as_csv
from springtide.connectors.postgres.connection import Dsn
from springtide.connectors.postgres.table import Target
from springtide.dataflow.errors import StepFailed

if TYPE_CHECKING:
    from psycopg import Connection

PART, ROW = "springtide$part", "springtide$row"
WRITING = "writing rows to the database"
PREFIX = "springtide_stage"
CHUNK_ROWS = 100_000
"""Rows are sent this many at a time, so that their text does not fill the memory."""
DROP_WAIT = "2s"
"""How long to wait for a task that still holds on to a table; it is dropped after the next epoch else."""


@dataclass(frozen=True)
class Stage:
    """The tables of one attempt to publish one epoch of one sink."""

    target: Target
    owner: str
    generation: int
    epoch: int
    attempt: str

    @classmethod
    def new(cls, target: Target, lineage: str, sink: str, generation: int, epoch: int) -> "Stage":
        owner = hashlib.blake2b(f"{lineage}\n{sink}\n{target.name}".encode(), digest_size=8).hexdigest()
        return cls(target, owner, generation, epoch, secrets.token_hex(3))

    @property
    def rows(self) -> str:
        return f"{PREFIX}_{self.owner}_{self.generation}_{self.epoch}_{self.attempt}"

    @property
    def parts(self) -> str:
        return f"{self.rows}_p"

    def create(self, connection: "Connection[Any]", columns: list[str]) -> None:
        """Make the tables, with the target's own types, so that what does not fit is found on the way in."""
        from psycopg.sql import SQL, Identifier

        names = SQL(", ").join(map(Identifier, columns))
        # Without a key or a default of the target: rows only wait here.
        like = SQL("CREATE UNLOGGED TABLE {} AS SELECT 0 AS {}, 0::bigint AS {}, {} FROM {} WITH NO DATA").format(
            self.target.beside(self.rows), Identifier(PART), Identifier(ROW), names, self.target.sql()
        )
        parts = SQL("CREATE UNLOGGED TABLE {} (part integer PRIMARY KEY)").format(self.target.beside(self.parts))
        with connection.transaction():
            connection.execute(like)
            connection.execute(parts)

    def staged(self, connection: "Connection[Any]") -> set[int]:
        """The parts that are there, whole; none after a crash of the server, which empties unlogged tables."""
        import psycopg
        from psycopg.sql import SQL

        try:
            found = connection.execute(SQL("SELECT part FROM {}").format(self.target.beside(self.parts))).fetchall()
        except psycopg.errors.UndefinedTable:
            return set()
        return {int(row[0]) for row in found}

    def clear(self, connection: "Connection[Any]") -> None:
        """Drop what this and earlier attempts, some of which may have crashed, have left; of newer drivers nothing."""
        import psycopg
        from psycopg.sql import SQL, Literal

        like = f"{PREFIX}_{self.owner}_".replace("_", r"\_") + "%"
        found = connection.execute(
            "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename LIKE %s",
            [self.target.schema, like],
        ).fetchall()
        for name in (name for (name,) in found if self._over(name)):
            try:
                with connection.transaction():
                    connection.execute(SQL("SET LOCAL lock_timeout = {}").format(Literal(DROP_WAIT)))
                    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(self.target.beside(name)))
            except psycopg.errors.LockNotAvailable:
                continue

    def _over(self, table: str) -> bool:
        """Whether a table of this sink is from an attempt before this one, or from this one."""
        new = _NAME.fullmatch(table)
        if new is None:
            return True  # An earlier release knew no generations.
        return (int(new[1]), int(new[2])) <= (self.generation, self.epoch)


_NAME = re.compile(rf"{PREFIX}_[0-9a-f]+_([0-9]+)_([0-9]+)_[0-9a-f]{{6}}(?:_p)?")


@dataclass(frozen=True)
class WritePart:
    """Copy one part to the stage; runs on a worker."""

    dsn: Dsn
    step: str
    stage: Stage
    key: tuple[str, ...]

    def __call__(self, part: int, rows: pa.Table) -> None:
        from psycopg.sql import SQL, Identifier

        self._check_keys(rows)
        target, names = self.stage.target, SQL(", ").join(map(Identifier, (PART, ROW, *rows.column_names)))
        copy = SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(target.beside(self.stage.rows), names)
        mark = SQL("INSERT INTO {} VALUES (%s) ON CONFLICT DO NOTHING").format(target.beside(self.stage.parts))
        with self.dsn.connected(self.step, WRITING) as connection, connection.transaction() as transaction:
            with connection.cursor() as cursor:
                with cursor.copy(copy) as stream:
                    for first in range(0, rows.num_rows, CHUNK_ROWS):
                        some = rows.slice(first, CHUNK_ROWS)
                        numbers = np.arange(first, first + some.num_rows)
                        stream.write(as_csv(some, {PART: np.full(len(numbers), part), ROW: numbers}))
                noted = cursor.execute(mark, [part]).rowcount == 1
            if not noted:
                from psycopg import Rollback

                raise Rollback(transaction)
        faults.fire("publish.part", self.stage.epoch)

    def _check_keys(self, rows: pa.Table) -> None:
        if self.stage.target.null_keys:
            return
        for name in self.key:
            nulls = rows.column(name).null_count
            if nulls:
                reason = (
                    f"expected no nulls in the key column {name!r}, as a unique index takes each for another key, "
                    f"got {nulls}; filter or replace them in a transform, or make the index with NULLS NOT DISTINCT"
                )
                raise StepFailed(self.step, WRITING, reason)
