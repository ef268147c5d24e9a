"""What a query should give, by DuckDB over the same files, and how far the rows of an answer are from it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from springtide.errors import BadValue
from springtide.workloads.nexmark.files import SIDE_INPUT, TABLES
from springtide.workloads.nexmark.queries.catalogue import Output, Query

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LATE = timedelta(seconds=4)
"""How far the watermark trails the newest event, whoever runs a query."""
SLIDE = timedelta(seconds=2)
"""Of the windows that slide."""


@dataclass(frozen=True)
class Difference:
    """How many rows an answer lacks, and how many it has that the oracle has not."""

    missing: int
    surplus: int
    rows: int
    """Of the oracle."""

    @property
    def equal(self) -> bool:
        return self.missing == self.surplus == 0


class Oracle:
    """The right answers over the events in a directory. Times are of UTC and without a zone."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.database = _database()
        for table in TABLES:
            self._view(table, self.directory / table / "*.parquet")
        self._view("side_input", self.directory / SIDE_INPUT)

    def answer(self, query: Query) -> pa.Table:
        """The rows that a right answer has, after `comparable` has had them."""
        return self._closed(query, self.database.sql(query.sql("oracle")).to_arrow_table())

    def comparable(self, query: Query, rows: pa.Table) -> pa.Table:
        """Of all rows that somebody gave, in their order: those that have to be the oracle's, as a multiset."""
        rows = without_zones(rows)
        if query.output is Output.UPSERT:
            rows = newest(rows, query.key)
        if query.fold is not None:
            self.database.register("rows", rows)
            rows = self.database.sql(query.fold).to_arrow_table()
            self.database.unregister("rows")
        return self._closed(query, rows)

    def difference(self, query: Query, rows: pa.Table) -> Difference:
        """How far all rows that somebody gave are from what they should be.

        BadValue, if they have other columns: that is a mistake in the query and not in its rows.
        """
        expected, found = self.answer(query), self.comparable(query, rows)
        if found.column_names != expected.column_names:
            raise BadValue(f"{query.name}: expected the columns {expected.column_names}, got {found.column_names}")
        found = found.cast(expected.schema)
        return Difference(self._less(expected, found), self._less(found, expected), expected.num_rows)

    def closed_before(self) -> datetime:
        """Until when windows are closed for sure at the end of the data, whoever runs a query.

        The watermark may be that of the epoch before, and rows of closed windows may have to pass a second step that
        waits as well. So the last two files do not count.
        """
        files = [str(file) for file in sorted((self.directory / "bid").glob("*.parquet"))[:-2]]
        if not files:
            return datetime.min
        [(last,)] = self.database.read_parquet(files).aggregate("max(date_time::TIMESTAMP)").fetchall()
        return last - LATE - SLIDE if last else datetime.min

    def _closed(self, query: Query, rows: pa.Table) -> pa.Table:
        if query.closed is None:
            return rows
        end = pa.scalar(self.closed_before(), rows.schema.field(query.closed).type)
        return rows.filter(pc.field(query.closed) < end)

    def _less(self, these: pa.Table, those: pa.Table) -> int:
        """How many of these rows are not among those, each counted as often as it is there."""
        self.database.register("these", these)
        self.database.register("those", those)
        [(rows,)] = self.database.execute("SELECT count(*) FROM (FROM these EXCEPT ALL FROM those)").fetchall()
        return int(rows)

    def _view(self, name: str, files: Path) -> None:
        rows = self.database.read_parquet(str(files))
        kinds = zip(rows.columns, rows.types, strict=True)
        columns = [f'"{c}"::TIMESTAMP AS "{c}"' if "TIME ZONE" in str(kind) else f'"{c}"' for c, kind in kinds]
        rows.select(", ".join(columns)).create_view(name)


def newest(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The last row of each key."""
    numbered = rows.select(key).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    return rows.take(numbered.group_by(list(key)).aggregate([("_row", "max")])["_row_max"])


def without_zones(rows: pa.Table) -> pa.Table:
    """The same with times of UTC in place of those with a zone, to the microsecond."""
    plain = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(plain))


def _database() -> "DuckDBPyConnection":
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    return database
