"""What a dataflow knows of a source. A connector's source is a subclass; `docs/extending.md` shows one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from springtide.connectors.gauge import SourceGauge
    from springtide.connectors.open_source import OpenSource
    from springtide.dataflow.stream import Stream

CORRUPT = "_corrupt_record"
"""The column with the text of a record that does not fit the schema, null in all others. Steps never see it."""
MALFORMED = "_malformed"
"""The same for a source whose malformed records have a way of their own: the record as it came."""


class SourceSpec(ABC):
    """A description of a source: made where the app is written, opened on the driver when it starts."""

    @property
    def kind(self) -> str:
        """What it is, for people, and for the checkpoint: a source of another kind can't go on from its offsets."""
        return type(self).__name__.lower()

    @property
    def admits(self) -> bool:
        """Whether the rows that it gives in an epoch can be limited while it runs."""
        return False

    @property
    def holds(self) -> bool:
        """Whether it can be left unread for a while, and then goes on where it was."""
        return False

    @property
    def replayable(self) -> bool:
        """Whether it gives the rows of an epoch again, however long ago that was."""
        return True

    @property
    def counts_rows(self) -> bool:
        """Whether its offsets tell how many rows an epoch took; if not, tasks count them."""
        return False

    @property
    def location(self) -> str | None:
        """A path or URL that Spark's own file systems have to open; None if there is none."""
        return None

    def checked(self, step: str) -> Self:
        """Itself; BadGraph, which names the step, if it can't be read as written."""
        return self

    def attach(self, stream: "Stream") -> "Stream":
        """The stream that the app goes on with; steps may be added here, as for dead letters."""
        return stream

    def session_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Spark settings that it takes beside those given, such as jars on the class path."""
        return {}

    @abstractmethod
    def open(self, spark: "SparkSession", step: str, *, placed: bool) -> "OpenSource":
        """Its streaming DataFrame; `placed`, with a column that says where each record stands, to shed by."""

    def gauge(self, step: str, initial_offset: Callable[[], str | None]) -> "SourceGauge | None":
        """What tells how far the app is with it; None if nobody can. `initial_offset` is the one it began at."""
        return None
