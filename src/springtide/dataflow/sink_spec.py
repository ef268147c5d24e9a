"""What a dataflow knows of a sink. A connector's sink is a subclass; `docs/extending.md` shows one."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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

    def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
        """Call a function on the workers with the number and the rows of each part that has rows; their numbers.

        With `parts`, rows go to that many parts by the hash of their key: a part then has the same rows however the
        epoch was computed.
        """


class SinkSpec(ABC):
    """A sink. Publishing is idempotent by epoch: a repeated epoch changes nothing."""

    @property
    def place(self) -> str | None:
        """Where it writes: no two sinks of an app may write to the same place. None if they may."""
        return None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns that it goes by, each with the option that names it: rows without them are refused."""
        return ()

    def check(self, lineage: str | None) -> None:
        """Raise an error, before the first epoch, if it would fail then; the lineage of a new checkpoint is None."""
        return

    @abstractmethod
    def publish(self, output: EpochOutput) -> None:
        """Make an epoch's rows visible; may be called again for the last epoch after a crash."""


class Publisher(Protocol):
    """Anything with a `publish` can be a sink."""

    def publish(self, output: EpochOutput) -> None:
        """Make an epoch's rows visible; may be called again for the last epoch after a crash."""


@dataclass(frozen=True)
class PlainSink(SinkSpec):
    """A user's object that publishes and is no SinkSpec."""

    publisher: Publisher

    def publish(self, output: EpochOutput) -> None:
        self.publisher.publish(output)


def as_sink(given: SinkSpec | Publisher) -> SinkSpec | None:
    """A sink from whatever a person passed; None if it can't publish."""
    if isinstance(given, SinkSpec):
        return given
    return PlainSink(given) if callable(getattr(given, "publish", None)) else None
