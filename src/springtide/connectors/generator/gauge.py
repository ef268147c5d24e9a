"""How far an app is with a generator: its clock tells what is due."""

import json
from dataclasses import dataclass

import numpy as np

from springtide.connectors.generator.rows import GeneratorSpec
from springtide.metrics.report import SourceReport


@dataclass(frozen=True)
class GeneratorGauge:
    """A generator knows what is due by its clock."""

    name: str
    spec: GeneratorSpec

    def measure(self, offset: str, before: str | None, now: float) -> SourceReport:
        end, spec = json.loads(offset), self.spec
        start = json.loads(before)["row"] if before is not None else 0
        began = end["start_us"] / 1e6
        lag = max(0, spec.due_rows(now - began) - end["row"])
        latency = 0.0
        if end["row"] > start:
            latency = max(0.0, now - began - float(spec.rate.due_at(np.array([end["row"] - 1]))[0]))
        return SourceReport(self.name, end["row"] - start, lag, latency)

    def close(self) -> None:
        """Nobody is asked."""
