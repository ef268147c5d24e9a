"""How far the sources are: rows taken, rows due, and how old the newest taken row is."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from springtide.blocks.manifest import Manifest
from springtide.blocks.store import Store
from springtide.dataflow.graph import Graph, Source
from springtide.engine.durability.spark_log import NOT_BEGUN, initial_offset
from springtide.metrics.report import SourceReport


@dataclass(frozen=True)
class Seen:
    """What an epoch took; None where the sources can't tell."""

    now: float
    sources: tuple[SourceReport, ...]

    @property
    def rows_in(self) -> int:
        """Rows that the sources gave; those that can't tell have given none, as nothing of them was read."""
        return sum(source.rows_in or 0 for source in self.sources)

    @property
    def lag_rows(self) -> int | None:
        return _all([source.lag_rows for source in self.sources])

    @property
    def latency_s(self) -> float | None:
        known = [source.latency_s for source in self.sources if source.latency_s is not None]
        return max(known) if len(known) == len(self.sources) and known else None


class Progress:
    """Compares offsets with what is due, at the sources that can tell: generators and topics."""

    def __init__(self, graph: Graph, clock: Callable[[], float] = time.time, store: Store | None = None) -> None:
        self.clock = clock
        self.sources = graph.of(Source)
        self._gauges = [
            source.spec.gauge(source.name, partial(_initial_offset, store, index))
            for index, source in enumerate(self.sources)
        ]

    def measure(self, manifest: Manifest, parent: Manifest | None, taken: Mapping[str, int] | None = None) -> Seen:
        """Rows taken by an epoch, rows due but not taken, and the age of its newest row, for each source.

        `taken` are the rows that were read, by source; without it, offsets tell how many there were.
        """
        now = self.clock()
        known = len(manifest.offsets) == len(self.sources)
        found = []
        for index, (source, gauge) in enumerate(zip(self.sources, self._gauges, strict=True)):
            if known and gauge is not None and manifest.offsets[index] != NOT_BEGUN:
                before = parent.offsets[index] if parent is not None else NOT_BEGUN
                report = gauge.measure(manifest.offsets[index], None if before == NOT_BEGUN else before, now)
            else:
                report = SourceReport(source.name)
            # A topic has offsets without a record, and what was read is what counts.
            found.append(report if taken is None else replace(report, rows_in=taken.get(source.name)))
        return Seen(now, tuple(found))

    def rows(self, manifest: Manifest, parent: Manifest | None) -> dict[str, int]:
        """By source whose offsets tell: the rows taken by an epoch."""
        found = self.measure(manifest, parent).sources
        return {source.name: source.rows_in for source in found if source.rows_in is not None}

    def close(self) -> None:
        """Ask nobody any more."""
        for gauge in self._gauges:
            if gauge is not None:
                gauge.close()


def _initial_offset(store: Store | None, source: int) -> str | None:
    """Where Spark began to read a source; None if nobody knows."""
    return None if store is None else initial_offset(store, source)


def _all(values: list[int | None]) -> int | None:
    """The sum, if all are known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
