"""How fast rows are put into a source, from what has been taken out of it and what waits in it.

In any time, as many rows come in as are taken out plus those that the backlog grows by. Both are counted by
partition: a partition that nobody takes from adds its growing lag, one without lag what was taken.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True)
class Sample:
    """How a source stood at one time, by partition."""

    at_s: float
    """When the broker was asked; on one clock for all samples."""
    consumed: Mapping[int, int]
    """Rows taken out so far."""
    lag: Mapping[int, int]
    """Rows that waited then."""


@dataclass(frozen=True)
class Rate:
    """An estimate over the time between two samples."""

    from_s: float
    until_s: float
    by_partition: Mapping[int, float]

    @property
    def rows_per_s(self) -> float:
        return sum(self.by_partition.values())


def between(earlier: Sample, later: Sample) -> Rate:
    """Rows a second by partition: the variation of the lag plus what was taken.

    A partition that the earlier sample lacks was empty then. A count that falls, because a topic was made anew,
    gives nothing.
    """
    seconds = later.at_s - earlier.at_s
    if seconds <= 0:
        raise ValueError(f"expected samples in the order of their time, got {earlier.at_s} s and {later.at_s} s")
    found = {}
    for partition, lag in later.lag.items():
        grown = lag - earlier.lag.get(partition, 0)
        taken = later.consumed.get(partition, 0) - earlier.consumed.get(partition, 0)
        found[partition] = max(0, grown + taken) / seconds
    return Rate(earlier.at_s, later.at_s, found)


RISE_S = 1.4
"""Seconds: a rate that is higher in all samples of this time is a load that rises, and no burst."""
SURE_ROWS = 30
"""Of fewer rows chance may tell the same."""
RISE = 1.1
"""How many times the highest rate before it is no chance."""


@dataclass
class InjectionRate:
    """The rate over the last `window_s` seconds of samples; wider if they come more seldom.

    A rate that rises in a step is told as soon as that is sure, and not smeared over the whole window: it is that of
    the last samples if each of them tells of more rows than any before. Batches that come now and then do not.
    """

    window_s: float = 5.0
    _samples: deque[Sample] = field(default_factory=deque, init=False)

    def add(self, sample: Sample) -> None:
        """Take a sample; one that is no later than the last is left out."""
        samples = self._samples
        if samples and sample.at_s <= samples[-1].at_s:
            return
        samples.append(sample)
        while len(samples) > 2 and sample.at_s - samples[1].at_s >= self.window_s:
            samples.popleft()

    def estimate(self) -> Rate | None:
        """The rate up to the last sample; None before there are two."""
        if len(self._samples) < 2:
            return None
        return between(self._samples[self._risen()], self._samples[-1])

    def _risen(self) -> int:
        """The sample since which the rate is higher than ever in the window; the first one if there is none."""
        samples = list(self._samples)
        since = next((i for i in range(len(samples) - 1, -1, -1) if samples[-1].at_s - samples[i].at_s >= RISE_S), 0)
        rates = [between(a, b).rows_per_s for a, b in pairwise(samples)]
        before, after = rates[:since], rates[since:]
        rows = sum(rate * (b.at_s - a.at_s) for rate, (a, b) in zip(after, pairwise(samples[since:]), strict=True))
        sure = len(before) >= 2 and len(after) >= 3 and rows >= SURE_ROWS
        return since if sure and min(after) > RISE * max(before) else 0
