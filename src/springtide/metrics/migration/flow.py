"""Rows over time. Epochs give theirs in lumps; what is wanted is how fast rows flowed."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

SLACK = 1.5
"""Lumps whose distance is at most this many times the usual one are one flow; a longer one is a stop."""
SHORTEST_S = 0.001
"""The time that a lump takes at least, so that rates are finite."""

Lump = tuple[float, float]
"""When rows passed, and how many."""


@dataclass(frozen=True)
class Flow:
    """How many rows had passed by some time; in between, they pass evenly."""

    times: Sequence[float]
    """Ascending."""
    passed: Sequence[float]

    @classmethod
    def of(cls, lumps: Iterable[Lump], spread_s: float) -> "Flow":
        """The rows of a lump pass evenly since the lump before, but for no longer than `spread_s` before its time.

        So lumps that come as usual are a steady flow, and a stop stays one, however many rows come after it.
        """
        by_time: dict[float, float] = {}
        for at, rows in lumps:
            by_time[at] = by_time.get(at, 0.0) + rows
        times: list[float] = []
        passed: list[float] = []
        total = 0.0
        for at in sorted(by_time):
            start = at - max(spread_s, SHORTEST_S)
            if not times or start > times[-1]:
                times.append(start)
                passed.append(total)
            total += by_time[at]
            times.append(at)
            passed.append(total)
        return cls(times, passed)

    def by(self, at: float) -> float:
        """Rows that had passed by a time."""
        after = bisect_right(self.times, at)
        if after == 0:
            return 0.0
        if after == len(self.times):
            return self.passed[-1]
        early, late = self.times[after - 1], self.times[after]
        share = (at - early) / (late - early)
        return self.passed[after - 1] + share * (self.passed[after] - self.passed[after - 1])

    def rate(self, until: float, window_s: float) -> float:
        """Rows a second, on average over the time up to `until`."""
        return (self.by(until) - self.by(until - window_s)) / window_s


def usual_spread_s(times: Sequence[float], calm_until: float) -> float:
    """The most that lumps of one flow are apart, from those in the calm; from all if there were too few then."""
    calm = [at for at in times if at <= calm_until]
    gaps = [late - early for early, late in pairwise(calm if len(calm) > 1 else times)]
    return SLACK * median(gaps) if gaps else SHORTEST_S
