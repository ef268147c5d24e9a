"""The commit record: what one instance tells the driver of an epoch. Plain JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from pyspark.sql.types import StringType, StructField, StructType

from springtide.blocks.block import BlockRef
from springtide.blocks.slice_set import NO_SLICES, SliceSet
from springtide.metrics.report import HotKey, InstanceReport, Sent
from springtide.state.logic import BEGINNING_US

HOTTEST = 5
"""Hot keys that are told of."""

RECORD = StructType([StructField("record", StringType())])


@dataclass(frozen=True)
class MapStats:
    """What was seen where rows were read."""

    rows_in: int = 0
    late_rows: int = 0
    malformed_rows: int = 0
    newest_us: tuple[int, ...] = ()
    """By input: the newest event time."""
    busy_s: float = 0.0
    traffic: tuple[Sent, ...] = ()
    hot_keys: tuple[HotKey, ...] = ()
    ahead_rows: int = 0

    def __add__(self, other: "MapStats") -> "MapStats":
        return MapStats(
            self.rows_in + other.rows_in,
            self.late_rows + other.late_rows,
            self.malformed_rows + other.malformed_rows,
            newest_of(self.newest_us, other.newest_us),
            self.busy_s + other.busy_s,
            (*self.traffic, *other.traffic),
            hottest((*self.hot_keys, *other.hot_keys)),
            self.ahead_rows + other.ahead_rows,
        )


def newest_of(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    """By input: the newest of two event times."""
    return tuple(map(max, zip_longest(some, others, fillvalue=BEGINNING_US)))


def hottest(found: Iterable[HotKey]) -> tuple[HotKey, ...]:
    """The hottest keys, each once."""
    rows: dict[tuple[str, int], int] = {}
    for hot in found:
        rows[hot.key, hot.slice] = rows.get((hot.key, hot.slice), 0) + hot.rows
    most = sorted(rows, key=lambda which: (-rows[which], which))[:HOTTEST]
    return tuple(HotKey(key, number, rows[key, number]) for key, number in most)


@dataclass(frozen=True)
class CommitRecord:
    """One instance's share of an epoch: blocks written, runs replaced, keys gained and lost."""

    instance: int
    run: BlockRef | None = None
    replaced: tuple[tuple[str, SliceSet], ...] = ()
    """Runs that the new one replaces, and for which slices."""
    output: BlockRef | None = None
    backup: BlockRef | None = None
    """The epoch's rows of the slices that the worker stands by for."""
    pending: BlockRef | None = None
    """The epoch's rows of its stalled slices."""
    keys_added: int = 0
    keys_removed: int = 0
    durable_reads: int = 0
    """Blocks of state that no local copy was good for."""
    due_us: int | None = None
    """When the next key of the instance expires; None if rows came, so that another epoch will tell."""
    stats: MapStats = field(default_factory=MapStats)
    report: InstanceReport = field(default_factory=lambda: InstanceReport(-1))
    astray: str = ""
    """The worker it ran on, if that was not the planned one; it then did nothing."""
    missing: SliceSet = NO_SLICES
    """Slices whose state was not on the worker; it then did nothing."""
