"""The events of a directory as the streams of an app."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from springtide.app import App
from springtide.connectors import sources
from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.events import AUCTION, BID, PERSON
from springtide.workloads.nexmark.files import SIDE_INPUT

_SPARK = {pa.int64(): "BIGINT", pa.string(): "STRING"}


@dataclass(frozen=True)
class Inputs:
    """People, auctions and bids, of which only those that a query asks for are read: `inputs.bid("auction", "price")`.

    Parquet keeps each column by itself, so columns that are not asked for cost nothing.
    """

    app: App
    directory: str | Path
    files_an_epoch: int = 1
    """Of each table."""

    def person(self, *columns: str) -> Stream:
        return self._stream("person", PERSON, columns)

    def auction(self, *columns: str) -> Stream:
        return self._stream("auction", AUCTION, columns)

    def bid(self, *columns: str) -> Stream:
        return self._stream("bid", BID, columns)

    @cached_property
    def side_input(self) -> str:
        """The path of the table that does not change."""
        return str(Path(self.directory) / SIDE_INPUT)

    def _stream(self, table: str, schema: pa.Schema, columns: tuple[str, ...]) -> Stream:
        ddl = ", ".join(f"{n} {_SPARK.get(schema.field(n).type, 'TIMESTAMP')}" for n in columns or schema.names)
        place = str(Path(self.directory) / table)
        a_time = str(self.files_an_epoch)
        return self.app.source(table, sources.files(place, format="parquet", schema=ddl, maxFilesPerTrigger=a_time))
