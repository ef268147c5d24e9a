"""The rows that an epoch takes from each source, counted where tasks read them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


def by_source(told: Iterable[str], sources: int) -> tuple[int, ...]:
    """The rows of each source, from lines of a partition's number and its counts.

    A partition may be read several times: by several steps, or by a task that is run again. It has the same rows each
    time, and who stopped before its end tells fewer. So the most that anybody tells of a partition counts.
    """
    partitions: dict[int, tuple[int, ...]] = {}
    for line in told:
        partition, *counts = map(int, line.split())
        before = partitions.get(partition, (0,) * sources)
        partitions[partition] = tuple(map(max, before, counts))
    return tuple(sum(counts) for counts in zip(*partitions.values(), strict=True)) or (0,) * sources


@dataclass(frozen=True)
class Taken:
    """What tasks have told of one epoch's rows."""

    names: Sequence[str]
    """The sources, in their order."""
    told: Callable[[], Iterable[str]]

    def rows(self) -> dict[str, int]:
        """By source: its rows, once the epoch's jobs have ended."""
        return dict(zip(self.names, by_source(self.told(), len(self.names)), strict=True))
