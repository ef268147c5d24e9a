"""Epochs added up, as the catalogue says: what counters and histograms stand at."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from springtide.metrics.catalogue import BUCKETS_S, CATALOGUE, Counter, Histogram, Labels
from springtide.metrics.report import EpochReport


@dataclass(frozen=True)
class Spread:
    """Observations by bucket, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS_S) + 1)
    """The last is for what is above all bounds."""
    sum_s: float = 0.0

    def after(self, value: float) -> "Spread":
        """With one observation more; a bucket takes its upper bound in."""
        at = bisect_left(BUCKETS_S, value)
        counts = tuple(count + (number == at) for number, count in enumerate(self.counts))
        return Spread(counts, self.sum_s + value)


@dataclass(frozen=True)
class Totals:
    """What the epochs of one run come to.

    Each epoch counts once: one that a report told of before adds only to series that say so. Times are of epochs that
    this run computed.
    """

    sums: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)
    """By the name of a counter, and its labels."""
    spreads: Mapping[str, Mapping[Labels, Spread]] = field(default_factory=dict)
    """By the name of a histogram, and its labels."""

    @classmethod
    def of(cls, reports: Iterable[EpochReport]) -> "Totals":
        """The totals of these epochs."""
        found = cls()
        for report in reports:
            found = found.after(report)
        return found

    def after(self, report: EpochReport) -> "Totals":
        """The totals with one epoch more."""
        sums = {name: dict(by_labels) for name, by_labels in self.sums.items()}
        spreads = {name: dict(by_labels) for name, by_labels in self.spreads.items()}
        for series in CATALOGUE:
            if isinstance(series, Counter) and (series.repeats or report.counts):
                summed = sums.setdefault(series.name, {})
                for labels, value in series.of(report):
                    summed[labels] = summed.get(labels, 0) + value
            elif isinstance(series, Histogram) and not report.replayed:
                spread = spreads.setdefault(series.name, {})
                for labels, value in series.of(report):
                    spread[labels] = spread.get(labels, Spread()).after(value)
        return Totals(sums, spreads)

    def count(self, name: str) -> float:
        """Where a counter stands, over all its labels."""
        return sum(self.sums.get(name, {}).values())
