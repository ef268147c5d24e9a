"""Any streaming DataFrame as a source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from springtide.dataflow.source_spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from springtide.connectors.open_source import OpenSource


@dataclass(frozen=True)
class Streaming(SourceSpec):
    """Any streaming DataFrame, or a function that makes one from the session."""

    make: "Callable[[SparkSession], DataFrame]"
    replayable: bool = True
    kind: str = "stream"

    def open(self, spark: "SparkSession", step: str, *, placed: bool) -> "OpenSource":
        from springtide.connectors.open_source import OpenSource
        from springtide.connectors.record_place import of_row

        given = self.make(spark)
        placed = placed and getattr(given, "isStreaming", False)
        return OpenSource.of_rows(given.select("*", of_row(given)) if placed else given, recurring=True)


def stream(open: "Callable[[SparkSession], DataFrame]", *, replayable: bool = True) -> Streaming:
    """A streaming DataFrame made by a function of the session, for anything that Spark can read.

    Say `replayable=False` if it cannot give rows a second time, as a socket: the app then refuses what needs that.
    """
    return Streaming(open, replayable)
