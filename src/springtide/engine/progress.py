"""How far the sources are: rows taken, rows due, and how old the newest taken row is."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from springtide.blocks.manifest import Manifest
from springtide.dataflow.generator import GeneratorSpec
from springtide.dataflow.graph import Graph, Source
from springtide.dataflow.sources import Generator
from springtide.metrics.report import SourceReport


@dataclass(frozen=True)
class Seen:
    """What an epoch took; None where the sources can't tell."""

    now: float
    sources: tuple[SourceReport, ...]

    @property
    def rows_in(self) -> int | None:
        return _all([source.rows_in for source in self.sources])

    @property
    def lag_rows(self) -> int | None:
        return _all([source.lag_rows for source in self.sources])

    @property
    def latency_s(self) -> float | None:
        known = [source.latency_s for source in self.sources if source.latency_s is not None]
        return max(known) if len(known) == len(self.sources) and known else None


class Progress:
    """Compares offsets with what is due; only generators say what is due."""

    def __init__(self, graph: Graph, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.sources = graph.of(Source)

    def measure(self, manifest: Manifest, parent: Manifest | None) -> Seen:
        """Rows taken by an epoch, rows due but not taken, and the age of its newest row, for each source."""
        now = self.clock()
        known = len(manifest.offsets) == len(self.sources)
        found = []
        for index, source in enumerate(self.sources):
            if known and isinstance(source.spec, Generator):
                before = parent.offsets[index] if parent is not None else None
                found.append(_measure(source.name, source.spec.spec, manifest.offsets[index], before, now))
            else:
                found.append(SourceReport(source.name))
        return Seen(now, tuple(found))


def _measure(name: str, spec: GeneratorSpec, offset: str, before: str | None, now: float) -> SourceReport:
    end = json.loads(offset)
    start = json.loads(before)["row"] if before is not None else 0
    began = end["start_us"] / 1e6
    lag = max(0, spec.due_rows(now - began) - end["row"])
    latency = 0.0
    if end["row"] > start:
        latency = max(0.0, now - began - float(spec.rate.due_at(np.array([end["row"] - 1]))[0]))
    return SourceReport(name, end["row"] - start, lag, latency)


def _all(values: list[int | None]) -> int | None:
    """The sum, if all are known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
