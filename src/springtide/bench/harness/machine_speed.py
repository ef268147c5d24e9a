"""How fast the machine itself is while a benchmark runs: a small piece of work, the same every second."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import psutil

from springtide.bench.harness.watching import Watch

EVERY_S = 1.0
WORK = 60_000
"""Some 5 ms of work."""
WINDOW_S = 10.0


@dataclass(frozen=True)
class Speed:
    """One second of the machine."""

    at_s: float
    work_per_s: float
    """Pieces of work in a second of processor time, less what was stolen."""
    stolen: float
    """The share of all processor time that other guests of the host took."""


class MachineWatch(Watch):
    """Works a little every second and takes the time."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        super().__init__("machine", every_s)
        self.speeds: list[Speed] = []
        self.looked = threading.Event()
        """Set with the first of them."""
        self._before = psutil.cpu_times()

    def look(self) -> None:
        before, self._before = self._before, psutil.cpu_times()
        total = sum(self._before) - sum(before)
        # Where the system does not tell, nothing was stolen.
        taken = getattr(self._before, "steal", 0.0) - getattr(before, "steal", 0.0)
        stolen = taken / total if total > 0 else 0.0
        self.speeds.append(Speed(time.time(), (1 - stolen) / _work_s(), stolen))
        self.looked.set()


def _work_s() -> float:
    began = time.thread_time()
    sum(number * number for number in range(WORK))
    return time.thread_time() - began


def usual_speed(speeds: Sequence[Speed], since_s: float, until_s: float) -> float | None:
    """The median speed in a span; None if there was none."""
    found = [speed.work_per_s for speed in speeds if since_s <= speed.at_s <= until_s]
    return median(found) if found else None


def worst_speed(speeds: Sequence[Speed]) -> float | None:
    """The slowest ten seconds over the median of all; None for less than ten seconds."""
    usual = median(speed.work_per_s for speed in speeds) if speeds else 0.0
    windows = [
        fmean(s.work_per_s for s in speeds if first.at_s <= s.at_s < first.at_s + WINDOW_S)
        for first in speeds
        if first.at_s + WINDOW_S <= speeds[-1].at_s
    ]
    return min(windows) / usual if windows else None
