"""What is measured between two looks of the control loop, or two samples of the story."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from springtide.simulator.model.arrivals import Arrivals
from springtide.simulator.model.placement import Floats
from springtide.simulator.report.story import Sample


class Window:
    """Adds up; by operator and worker."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.epochs = 0
        self.epochs_s = 0.0
        self.useful_s: dict[str, Floats] = {}
        self.rows_in: dict[str, Floats] = {}
        self.rows_out: dict[str, float] = {}
        self.taken: dict[str, int] = {}
        self.remote_rows = 0.0
        self.crossing_rows = 0.0
        """Rows from one operator to the next."""

    def add(self, operator: str, rows_in: Floats, useful_s: Floats, rows_out: float) -> None:
        self.rows_in[operator] = _sum(self.rows_in.get(operator), rows_in)
        self.useful_s[operator] = _sum(self.useful_s.get(operator), useful_s)
        self.rows_out[operator] = self.rows_out.get(operator, 0.0) + rows_out

    def took(self, source: str, rows: int) -> None:
        self.taken[source] = self.taken.get(source, 0) + rows

    @property
    def all_useful_s(self) -> float:
        return float(sum(useful.sum() for useful in self.useful_s.values()))

    def sample(self, now: float, arrivals: Iterable[Arrivals], cores: int, **at_the_end: Any) -> Sample:
        """What it comes to by now; some figures are those of its end."""
        took_s = now - self.began_s
        return Sample(
            at_s=now,
            arriving=sum(a.due(now) - a.due(self.began_s) for a in arrivals) / took_s,
            processed=sum(self.taken.values()) / took_s,
            busy=round(self.all_useful_s / (took_s * cores), 4),
            remote=round(self.remote_rows / self.crossing_rows, 4) if self.crossing_rows else 0.0,
            **at_the_end,
        )


def _sum(before: Floats | None, more: Floats) -> Floats:
    """Workers may have come since."""
    if before is None:
        return more
    if len(before) < len(more):
        before = np.pad(before, (0, len(more) - len(before)))
    return before + more
