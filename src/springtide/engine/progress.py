"""How far the sources are: rows taken, rows due, and how old the newest taken row is."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from springtide.blocks.manifest import Manifest
from springtide.dataflow.generator import GeneratorSpec
from springtide.dataflow.graph import Graph, Source
from springtide.dataflow.sources import Generator


@dataclass(frozen=True)
class Seen:
    """What an epoch took; None where the sources can't tell."""

    now: float
    rows_in: int | None = None
    lag_rows: int | None = None
    latency_s: float | None = None


class Progress:
    """Compares offsets with what is due; only generators say what is due."""

    def __init__(self, graph: Graph, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.generators: Mapping[int, GeneratorSpec] = {
            i: s.spec.spec for i, s in enumerate(graph.of(Source)) if isinstance(s.spec, Generator)
        }
        self.all_tell = len(self.generators) == len(graph.of(Source))

    def measure(self, manifest: Manifest, parent: Manifest | None) -> Seen:
        """Rows taken by an epoch, rows due but not taken, and the age of its newest row."""
        now = self.clock()
        if not self.all_tell or len(manifest.offsets) != len(self.generators):
            return Seen(now)
        rows_in = lag = 0
        latency = 0.0
        for index, spec in self.generators.items():
            end = json.loads(manifest.offsets[index])
            start = json.loads(parent.offsets[index])["row"] if parent is not None else 0
            began = end["start_us"] / 1e6
            rows_in += end["row"] - start
            lag += max(0, spec.due_rows(now - began) - end["row"])
            if end["row"] > start:
                due = began + float(spec.rate.due_at(np.array([end["row"] - 1]))[0])
                latency = max(latency, now - due)
        return Seen(now, rows_in, lag, latency)
