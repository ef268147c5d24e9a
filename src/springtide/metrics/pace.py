"""How long an epoch takes for the work in it: a part that is always there, and one that grows with its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.metrics.report import EpochReport

DOUBT = 0.25
"""How much the expectation that all cores work at once weighs: as much as epochs that vary by so many seconds."""

ALIKE = 0.05
"""How much the expectation that all useful time is for rows weighs: as much as epochs whose rows vary by a fifth."""

BESIDE = 0.2
"""The share of an epoch that may be for other things than its rows."""


@dataclass(frozen=True)
class EpochPace:
    """An epoch with so much useful time in all its instances takes `fixed_s + useful_s / cores`."""

    fixed_s: float
    """Planning, committing, starting tasks."""
    cores: float
    """How many cores work at once, on average, while there are rows to work on."""

    def length_s(self, least_s: float, most_s: float) -> float:
        """How long epochs should take so that most of one is for its rows; no longer than `most_s` if that can be."""
        return min(max(least_s, self.fixed_s / BESIDE), max(most_s, 2 * self.fixed_s))

    def room(self, epoch_s: float) -> float:
        """The cores that are of use if epochs take so long, one after the other."""
        return self.cores * max(0.0, epoch_s - self.fixed_s) / epoch_s


def useful_s(report: EpochReport) -> float:
    """The time that an epoch's instances spent on its rows, reading and stateless steps included."""
    return sum(o.map_busy_s + sum(i.useful_s for i in o.instances) for o in report.operators)


def beside_rows_s(reports: Sequence[EpochReport], step: str) -> float:
    """The useful time that a step takes in every epoch, however many rows it has: opening its state, writing it.

    Where epochs are all alike, all of it is taken to be for the rows. Without this, rows would seem the dearer the
    fewer an epoch has, and a limit on them would sink ever lower.
    """
    found = [o for report in reports for o in report.operators if o.step == step]
    times = [(o.rows_in, o.map_busy_s + sum(i.useful_s for i in o.instances)) for o in found]
    if not times:
        return 0.0
    mean_rows = sum(rows for rows, _ in times) / len(times)
    mean_useful = sum(useful for _, useful in times) / len(times)
    doubt = ALIKE * mean_rows**2
    spread = sum((rows - mean_rows) ** 2 for rows, _ in times) + doubt
    along = sum((rows - mean_rows) * (useful - mean_useful) for rows, useful in times)
    slope = (along + ALIKE * mean_rows * mean_useful) / spread if spread > 0 else 0.0
    return min(max(0.0, mean_useful - slope * mean_rows), min(useful for _, useful in times))


def pace(
    reports: Sequence[EpochReport], cores: float, beside_s: float = 0.0, most: float | None = None
) -> EpochPace:
    """The line through the lengths of epochs; where they are all alike, the one that `cores` expects.

    Of the useful time, `beside_s` is in every epoch, and part of what is fixed. Steps that do not wait for each other
    may keep more cores busy than one step is planned for: up to `most`.
    """
    times = [(max(0.0, useful_s(report) - beside_s), report.phases.total_s) for report in reports]
    count = len(times)
    mean_useful = sum(useful for useful, _ in times) / count
    mean_total = sum(total for _, total in times) / count
    spread = sum((useful - mean_useful) ** 2 for useful, _ in times)
    along = sum((useful - mean_useful) * (total - mean_total) for useful, total in times)
    slope = (along + DOUBT / cores) / (spread + DOUBT)
    # More than all cores can't work, nor less than one: epochs that were long for a moment's other work must not
    # make rows seem so dear that none are taken. And an epoch takes no less than its work.
    least = 1 / max(cores, most or 0.0)
    dearest = min(1.0, mean_total / mean_useful) if mean_useful > 0 else 1 / cores
    slope = min(max(slope, least), max(dearest, least))
    return EpochPace(max(0.0, mean_total - slope * mean_useful), 1 / slope)
