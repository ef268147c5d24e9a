"""The rows that an epoch takes from each source, and the malformed ones among them, counted where tasks read them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


def most_told(told: Iterable[str], counts: int) -> tuple[int, ...]:
    """The sums over all partitions, from lines of a partition's number and its counts.

    A partition may be read several times: by several steps, or by a task that is run again. It has the same rows each
    time, and who stopped before its end tells fewer. So the most that anybody tells of a partition counts.
    """
    partitions: dict[int, tuple[int, ...]] = {}
    for line in told:
        partition, *found = map(int, line.split())
        before = partitions.get(partition, (0,) * counts)
        partitions[partition] = tuple(map(max, before, found))
    return tuple(map(sum, zip(*partitions.values(), strict=True))) or (0,) * counts


@dataclass(frozen=True)
class RowsTaken:
    """What an epoch took from its sources."""

    by_source: dict[str, int]
    malformed: int
    """How many of them could not be read as what their source says they are."""


@dataclass(frozen=True)
class Taken:
    """What tasks tell of one epoch's rows."""

    names: Sequence[str]
    """The sources, in their order."""
    marks: int
    """How many columns mark malformed rows."""
    told: Callable[[], Iterable[str]]

    def rows(self) -> RowsTaken:
        """All that was read so far: everything, once the epoch's jobs have ended."""
        counts = most_told(self.told(), len(self.names) + self.marks)
        sources = len(self.names)
        return RowsTaken(dict(zip(self.names, counts[:sources], strict=True)), sum(counts[sources:]))
