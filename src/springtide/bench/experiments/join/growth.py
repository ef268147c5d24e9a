"""What an epoch of a join costs as its state grows: epochs of few rows over few and over many rows that wait."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from springtide.bench.experiments.join.meeting import Meeting
from springtide.bench.harness.arena import Arena, session
from springtide.bench.harness.contestants import Round, app_round
from springtide.bench.harness.rates_beside_spark import OURS
from springtide.connectors import sinks

FILL_ROWS = 500_000
"""Of each side in an epoch that fills the state, at most."""


@dataclass(frozen=True)
class Grown:
    """Epoch times by the number of rows that wait, and what the larger state takes."""

    times: dict[int, list[float]]
    state_bytes: int

    @property
    def few(self) -> int:
        return min(self.times)

    @property
    def many(self) -> int:
        return max(self.times)

    def epoch_s(self, held: int) -> float:
        """The median with so many rows that wait."""
        return median(self.times[held])

    @property
    def ratio(self) -> float:
        return self.epoch_s(self.many) / self.epoch_s(self.few)


@dataclass(frozen=True)
class Growth:
    few: int = 100_000
    many: int = 10_000_000
    """Rows that wait."""
    rows: int = 10_000
    """An epoch, of both sides."""
    rounds: int = 3
    epochs: int = 20
    partitions: int = 2

    def run(self, place: Arena) -> Grown:
        """Fill both states by large epochs, and take turns in small ones."""
        times: dict[int, list[float]] = {self.few: [], self.many: []}
        for held in times:
            fill = min(held // 2, FILL_ROWS)
            self._round(place, Meeting(fill, held), -(-held // 2 // fill))
        for _ in range(self.rounds):
            for held, found in times.items():
                done = self._round(place, Meeting(self.rows // 2, held), self.epochs)
                found += done.epochs_s
                if held == self.many and done.last is not None:
                    state_bytes = sum(step.state_bytes for step in done.last.operators)
        return Grown(times, state_bytes)

    def _round(self, place: Arena, meeting: Meeting, epochs: int) -> Round:
        directory = place.scratch / f"growth-{meeting.held}"
        return place.call(OURS, _in_its_process, meeting, directory, self.partitions, epochs)


def _in_its_process(meeting: Meeting, directory: Path, partitions: int, epochs: int) -> Round:
    return app_round(meeting.app(sinks.noop()), session(), directory, partitions, epochs)
