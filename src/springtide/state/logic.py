"""What a keyed operator does with one epoch: pure, columnar, without Spark.

Each row goes through two functions. `arrive` runs where rows are read: it may drop late rows,
assign windows and combine rows of equal key, so that less is shuffled. `update` runs where the
state is: it gets the epoch's rows of each key beside the state that the key had.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from springtide.errors import BadValue
from springtide.state.clock import Clock
from springtide.state.group import group
from springtide.state.keys import Indices, canonical
from springtide.state.layout import KEY, POSITION, Layout, one_array
from springtide.state.position import Positions
from springtide.state.sides import rows_of
from springtide.state.wide import widened

VALUE = "v."
BEGINNING_US = -(1 << 62)
"""Before every event time: the watermark of an operator that has seen nothing."""


@dataclass(frozen=True)
class Moment:
    """Where the clock of a step stands when an epoch starts; the same for all instances, and on replay."""

    watermark_us: int = BEGINNING_US
    """Event time up to which all rows are taken to have come; by the wall clock, what it shows."""
    previous_watermark_us: int = BEGINNING_US
    kept: float = 1.0
    """The share of offered rows that reaches the operator in this epoch; the rest is shed."""
    now_us: int | None = None
    """The wall clock when the epoch was planned, as Spark has logged it; None if nobody knows."""

    def __post_init__(self) -> None:
        if not 0.0 < self.kept <= 1.0:
            raise BadValue(f"expected a share of kept rows above 0 and up to 1, got {self.kept}")


@dataclass(frozen=True)
class Arrival:
    """Rows on their way to their instance, sorted by position, and what was seen on the way."""

    rows: pa.Table
    rows_in: int = 0
    late_rows: int = 0
    malformed_rows: int = 0
    newest_us: tuple[int, ...] = (BEGINNING_US,)
    """By input: the newest event time."""
    ahead_rows: int = 0
    """Rows that were kept out because their event time is too far ahead of the clock."""


@dataclass(frozen=True)
class Groups:
    """The epoch's rows of an instance, key by key, beside what was known of each key.

    `rows` are sorted so that key number i has rows `starts[i]` up to the next start. `state` has
    one row a key, in the same order; it is null where `known` is false.
    """

    keys: pa.Table
    rows: pa.Table
    starts: Indices
    state: pa.Table
    known: npt.NDArray[np.bool_]
    timers: pa.Array | None = None
    """When each key's timer is set to ring, null if it is not; None for a reducer without timers."""
    now_us: int = BEGINNING_US
    """Where the step's clock stands."""

    def __len__(self) -> int:
        return len(self.starts)

    def side(self, number: int) -> "Groups":
        """The same keys with the rows of one input alone, for steps with several; a key may have none."""
        which, rows = rows_of(self.rows, number)
        starts = np.searchsorted(self.group_of_row[which], np.arange(len(self)))
        return replace(self, rows=rows, starts=starts)

    @property
    def sizes(self) -> Indices:
        """How many rows each key has."""
        return np.diff(np.append(self.starts, self.rows.num_rows))

    @property
    def group_of_row(self) -> Indices:
        """For each row, the number of its key."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)


@dataclass(frozen=True)
class Changes:
    """What an update makes of its groups: one state row a key, and the operator's output rows."""

    state: pa.Table
    output: pa.Table
    keep: npt.NDArray[np.bool_] | None = None
    """False where the key is to be forgotten; None keeps all."""
    write: npt.NDArray[np.bool_] | None = None
    """False where the key's state is as it was; None writes all."""
    expires_us: npt.NDArray[np.int64] | None = field(default=None)


@dataclass(frozen=True)
class Closed:
    """What is given out for keys whose expiry has come, and what is left of them: rows that expire later, if any."""

    output: pa.Table
    left: pa.Table | None = None


class Logic(Protocol):
    """A keyed operator's behaviour, bound to the columns it gets."""

    @property
    def layout(self) -> Layout:
        """How its state is stored."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The input columns it needs beside the key."""

    @property
    def clock(self) -> Clock | None:
        """What closes, expires and rings by; None if nothing does."""

    @property
    def output(self) -> pa.Schema:
        """Its output rows."""

    def arrive(self, positions: Positions, keys: list[pa.Array], rows: pa.Table, moment: Moment) -> Arrival:
        """Prepare rows where they are read."""

    def update(self, groups: Groups, moment: Moment) -> Changes:
        """Fold an epoch's rows into the state."""

    def close(self, state: pa.Table, moment: Moment) -> Closed:
        """What becomes of keys whose expiry has come; `state` is in the layout's columns."""


def sorted_rows(positions: Positions, keys: list[pa.Array], rows: pa.Table, layout: Layout) -> pa.Table:
    """Rows as they travel, in order of position; rows of one key stay in the order in which they came."""
    order, rows = pa.array(np.argsort(positions, kind="stable")), widened(rows)
    columns = {POSITION: pa.array(positions).take(order)}
    columns |= {KEY + n: k.take(order) for n, k in zip(layout.key.names, keys, strict=True)}
    columns |= {VALUE + n: one_array(rows.column(n)).take(order) for n in rows.column_names}
    return pa.table(columns)


@dataclass(frozen=True)
class Segment:
    """Rows grouped by key, and the values of one column in that order."""

    positions: Positions
    keys: list[pa.Array]
    starts: Indices
    order: pa.Array

    @classmethod
    def of(cls, positions: Positions, keys: list[pa.Array], *, presorted: bool = False) -> "Segment":
        grouping = group(positions, keys, presorted=presorted)
        firsts = pa.array(grouping.firsts)
        keys = [k.take(firsts) for k in keys]
        return cls(positions[grouping.firsts], keys, grouping.starts, pa.array(grouping.order))

    def __len__(self) -> int:
        return len(self.starts)


def canonical_keys(rows: pa.Table, names: tuple[str, ...]) -> list[pa.Array]:
    """The key columns of incoming rows, each with one representation a value."""
    return [canonical(rows.column(name)) for name in names]
