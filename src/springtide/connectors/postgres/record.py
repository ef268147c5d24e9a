"""Which epoch of a sink is in its table, and which driver publishes there; kept beside the table."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from springtide.blocks.errors import TakenOver
from springtide.connectors.postgres.table import Target

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

EPOCHS = "springtide_epochs"
"""By app, sink and table: the last epoch that is in it, and the newest driver."""
NOTHING = -1
"""In place of an epoch: none is in the table yet."""
_HAS_GENERATION = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'generation' AND NOT attisdropped
)
"""


@dataclass(frozen=True)
class Record:
    """One row of the record: a sink's table, as one driver sees it."""

    target: Target
    lineage: str
    sink: str
    generation: int

    def enter(self, connection: "Connection[Any]") -> int:
        """Shut out earlier drivers; the last epoch that is in the table. TakenOver if there is a later driver."""
        self._ready(connection)
        connection.execute(
            self._sql(
                "INSERT INTO {} AS known (lineage, sink, target, epoch, generation) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT (lineage, sink, target) DO UPDATE "
                "SET generation = excluded.generation WHERE known.generation < excluded.generation"
            ),
            [*self._row, NOTHING, self.generation],
        )
        return self.check(connection)

    def check(self, connection: "Connection[Any]") -> int:
        """The last epoch that is in the table; TakenOver if a later driver publishes there."""
        ask = self._sql("SELECT epoch, generation FROM {} WHERE lineage = %s AND sink = %s AND target = %s")
        found = connection.execute(ask, self._row).fetchone()
        epoch, generation = (NOTHING, 0) if found is None else (int(found[0]), int(found[1]))
        if generation > self.generation:
            raise TakenOver(self.generation, f"the driver of generation {generation}")
        return epoch

    def add(self, connection: "Connection[Any]", epoch: int) -> bool:
        """Note an epoch; False if it is there already. Whoever is second waits here until the first is done.

        TakenOver if a later driver has come meanwhile: its row is locked from here on, so none can come before the
        transaction ends.
        """
        note = self._sql(
            "INSERT INTO {} AS known (lineage, sink, target, epoch, generation) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (lineage, sink, target) DO UPDATE "
            "SET epoch = excluded.epoch, generation = excluded.generation, published = excluded.published "
            "WHERE known.epoch < excluded.epoch AND known.generation <= excluded.generation"
        )
        if connection.execute(note, [*self._row, epoch, self.generation]).rowcount == 1:
            return True
        self.check(connection)
        return False

    @property
    def _row(self) -> list[str]:
        return [self.lineage, self.sink, self.target.name]

    def _sql(self, statement: str) -> "Composed":
        from psycopg.sql import SQL

        return SQL(statement).format(self.target.beside(EPOCHS))

    def _ready(self, connection: "Connection[Any]") -> None:
        """Make the table, or give one of an earlier release what it lacks."""
        import psycopg

        name = self.target.beside(EPOCHS).as_string(connection)
        if connection.execute(_HAS_GENERATION, [name]).fetchone() == (True,):
            return
        # Another app may be faster.
        with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
            connection.execute(
                self._sql(
                    "CREATE TABLE IF NOT EXISTS {} (lineage text, sink text, target text, epoch bigint NOT NULL, "
                    "published timestamptz NOT NULL DEFAULT now(), generation bigint NOT NULL DEFAULT 0, "
                    "PRIMARY KEY (lineage, sink, target))"
                )
            )
        connection.execute(self._sql("ALTER TABLE {} ADD COLUMN IF NOT EXISTS generation bigint NOT NULL DEFAULT 0"))
