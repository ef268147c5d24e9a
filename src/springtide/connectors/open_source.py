"""A source as its scan gives it, and how rows are made of its records."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from springtide.connectors.record_place import PLACE

Decode = Callable[[DataFrame, tuple[str, ...]], DataFrame]
"""The rows of records; columns of the records that are named go along."""


@dataclass(frozen=True)
class OpenSource:
    """Records, which may be shed before anybody looks into them, and what makes rows of them."""

    records: DataFrame
    """As the scan gives them; with the column PLACE, if rows may be shed."""
    decode: Decode
    recurring: bool = False
    """Whether records of several epochs may share a place: then they do not share one fate in all of them."""

    @classmethod
    def of_rows(cls, rows: DataFrame, *, recurring: bool = False) -> "OpenSource":
        """A source whose scan gives rows as they are."""
        return cls(rows, as_they_are, recurring)

    @property
    def rows(self) -> DataFrame:
        return self.decode(self.records, ())


def as_they_are(records: DataFrame, also: tuple[str, ...]) -> DataFrame:
    """Records that are rows already."""
    return records.drop(*({PLACE} - set(also)))
