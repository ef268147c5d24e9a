"""Publishes an epoch to a table: staged by workers, made visible by one transaction that also records its number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from springtide import faults
from springtide.connectors.postgres.connection import Dsn
from springtide.connectors.postgres.record import Record
from springtide.connectors.postgres.stage import PART, ROW, Stage, WritePart
from springtide.connectors.postgres.table import Wanted
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.errors import BadValue

if TYPE_CHECKING:
    from psycopg.sql import Composed

DURABLE = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
"""
"""Once it is published, an epoch is not offered again: a crash of the server must not take it back."""


@dataclass(frozen=True)
class Postgres(SinkSpec):
    """A table in PostgreSQL: rows replace those of the same key, or without a key are added; each epoch once."""

    dsn: Dsn
    table: str
    key: tuple[str, ...] = ()
    create: bool = False
    epoch: str | None = None

    def publish(self, output: EpochOutput) -> None:
        step, doing = output.sink, f"publishing epoch {output.epoch}"
        columns = list(output.schema.names)
        wanted = Wanted(step, doing, self.table, self.key, output.schema, self.epoch)
        with self.dsn.connected(step, doing) as connection:
            target = wanted.open(connection, create=self.create)
            record = Record(target, output.lineage, step, output.generation)
            if record.enter(connection) >= output.epoch:
                return
            stage = Stage.new(target, output.lineage, step, output.generation, output.epoch)
            stage.clear(connection)
            stage.create(connection, columns)
        # The connection is not kept while the workers write: that may take long.
        try:
            parts = output.each_part(WritePart(self.dsn, step, stage, self.key))
        except Exception:
            with self.dsn.connected(step, doing) as connection:
                record.check(connection)  # A driver that was taken over finds its stage gone.
            raise
        faults.fire("publish.staged", output.epoch)
        with self.dsn.connected(step, doing) as connection:
            with connection.transaction():
                connection.execute(DURABLE)
                if record.add(connection, output.epoch):
                    lost = set(parts) - stage.staged(connection)
                    if lost:
                        reason = f"the parts {sorted(lost)} are gone from the stage: the server has crashed meanwhile"
                        raise StepFailed(step, doing, reason, "Start the app again: it publishes the epoch anew")
                    if parts:
                        connection.execute(self._merge(stage, columns, output.epoch))
            stage.clear(connection)

    def _merge(self, stage: Stage, columns: list[str], epoch: int) -> "Composed":
        from psycopg.sql import SQL, Composable, Identifier, Literal

        names = SQL(", ").join(map(Identifier, columns))
        into, values = names, names
        if self.epoch is not None:
            into = SQL("{}, {}").format(names, Identifier(self.epoch))
            values = SQL("{}, {}").format(names, Literal(epoch))
        rows = stage.target.beside(stage.rows)
        if not self.key:
            add = SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
            return add.format(stage.target.sql(), into, values, rows)
        key = SQL(", ").join(map(Identifier, self.key))
        changing = [c for c in (*columns, *([self.epoch] if self.epoch else [])) if c not in self.key]
        change: Composable = SQL("NOTHING")
        if changing:
            each = (SQL("{0} = excluded.{0}").format(Identifier(c)) for c in changing)
            change = SQL("UPDATE SET {}").format(SQL(", ").join(each))
        # An epoch may have several rows of a key, one after the other; the last one counts.
        return SQL(
            "INSERT INTO {} ({}) SELECT DISTINCT ON ({}) {} FROM {} ORDER BY {}, {} DESC, {} DESC "
            "ON CONFLICT ({}) DO {}"
        ).format(stage.target.sql(), into, key, values, rows, key, Identifier(PART), Identifier(ROW), key, change)


def postgres(
    dsn: str,
    table: str,
    *,
    key: Sequence[str] | str = (),
    create: bool = False,
    epoch: str | None = None,
) -> Postgres:
    """A table in PostgreSQL, at a libpq URL or `host=… dbname=…`, that readers see change an epoch at a time.

    With a `key` (columns with a unique index) rows replace those of the same key; without one they are added.
    `create` makes the table if there is none. `epoch` names a column for the number of the epoch that wrote a row.
    Workers connect too. Names of tables and columns are taken as they are, also upper case.
    """
    columns = (key,) if isinstance(key, str) else tuple(key)
    if not table or not all(part for part in table.split(".", 1)):
        raise BadValue(f"expected a table's name, 'orders' or 'sales.orders', got {table!r}")
    if len(set(columns)) != len(columns) or not all(isinstance(c, str) and c for c in columns):
        raise BadValue(f"expected key= different column names, got {columns!r}")
    if epoch is not None and (not epoch or epoch in columns):
        raise BadValue(f"expected epoch= a column's name that is not in the key, got {epoch!r}")
    return Postgres(Dsn(dsn), table, columns, create, epoch)
