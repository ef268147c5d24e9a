"""The table that a sink writes to: found or made, and checked against the rows before any is sent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from springtide.connectors.postgres.columns import NoSuchType, accepted, type_name
from springtide.dataflow.errors import StepFailed

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier

_TABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = """
SELECT a.attname, t.typname, format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
# Only newer servers can have unique indexes to which nulls are equal, and only they know that column.
_UNIQUE = """
SELECT array_agg(a.attname::text), coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0 : i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, 2
"""


@dataclass(frozen=True)
class Target:
    """A table that fits the rows; `null_keys` if its unique index takes nulls for equal."""

    schema: str
    name: str
    null_keys: bool = False

    def sql(self) -> "Identifier":
        from psycopg.sql import Identifier

        return Identifier(self.schema, self.name)

    def beside(self, name: str) -> "Identifier":
        """Another table of the same schema."""
        from psycopg.sql import Identifier

        return Identifier(self.schema, name)


@dataclass(frozen=True)
class Wanted:
    """What a sink needs of its table."""

    step: str
    doing: str
    table: str
    key: tuple[str, ...]
    rows: pa.Schema
    epoch: str | None = None
    """A column for the epoch's number."""

    def open(self, connection: "Connection[Any]", *, create: bool) -> Target:
        """Find the table, or make it; raises StepFailed if it is not as it must be."""
        self._check_rows()
        found = self._find(connection)
        if found is None and create:
            self._create(connection)
            found = self._find(connection)
        if found is None:
            raise self._bad("a table", "none of that name; make it, or let create=True make it")
        oid, schema, name, kind = found
        if kind not in ("r", "p"):
            raise self._bad("a table", "something else of that name, such as a view")
        self._check_columns({n: (short, full) for n, short, full in connection.execute(_COLUMNS, [oid]).fetchall()})
        return Target(schema, name, bool(self.key) and self._null_keys(connection, oid))

    def _bad(self, expected: str, got: str) -> StepFailed:
        return StepFailed(self.step, self.doing, f"expected {self.table!r} to be {expected}, got {got}")

    def _check_rows(self) -> None:
        missing = [name for name in self.key if name not in self.rows.names]
        if missing:
            reason = f"expected a key among the columns {self.rows.names}, got {missing}"
            raise StepFailed(self.step, self.doing, reason)
        if self.epoch in self.rows.names:
            reason = f"expected epoch= a name that no column of {self.rows.names} has, got {self.epoch!r}"
            raise StepFailed(self.step, self.doing, reason)

    def _find(self, connection: "Connection[Any]") -> tuple[int, str, str, str] | None:
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in self.table.split(".", 1))
        row = connection.execute(_TABLE, [quoted]).fetchone()
        return None if row is None else (row[0], row[1], row[2], str(row[3]))

    def _create(self, connection: "Connection[Any]") -> None:
        from psycopg.sql import SQL, Composable, Identifier

        try:
            kinds = [cast(Any, type_name(f)) for f in self.rows]
        except NoSuchType as error:
            raise StepFailed(self.step, self.doing, str(error)) from None
        columns: list[Composable] = [
            SQL("{} {}").format(Identifier(name), SQL(kind)) for name, kind in zip(self.rows.names, kinds, strict=True)
        ]
        if self.epoch is not None:
            columns.append(SQL("{} bigint").format(Identifier(self.epoch)))
        if self.key:
            columns.append(SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(Identifier, self.key))))
        name = Identifier(*self.table.split(".", 1))
        connection.execute(SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(name, SQL(", ").join(columns)))

    def _check_columns(self, there: dict[str, tuple[str, str]]) -> None:
        fields = [*self.rows, *([pa.field(self.epoch, pa.int64())] if self.epoch is not None else [])]
        missing = [f.name for f in fields if f.name not in there]
        if missing:
            raise self._bad(f"a table with the columns {[f.name for f in fields]}", f"one without {missing}")
        for field in fields:
            try:
                kinds = accepted(field)
            except NoSuchType as error:
                raise StepFailed(self.step, self.doing, str(error)) from None
            short, full = there[field.name]
            if kinds is not None and short not in kinds:
                expected = f"a table whose column {field.name!r} takes {field.type}, such as {type_name(field)}"
                raise self._bad(expected, f"one of type {full}")

    def _null_keys(self, connection: "Connection[Any]", oid: int) -> bool:
        for columns, null_keys in connection.execute(_UNIQUE, [oid]).fetchall():
            if set(columns) == set(self.key):
                return bool(null_keys)
        columns = ", ".join(self.key)
        hint = f"CREATE UNIQUE INDEX ON {self.table} ({columns})"
        raise self._bad(f"a table with a unique index on exactly ({columns})", f"one without; {hint}")
