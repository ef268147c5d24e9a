"""What an epoch costs: a part that is always there, one for every row that is kept, one for every row that is shed.

Both lines go through the mean of what was measured, the last epochs counting most. Where epochs are too much alike to
tell the parts from each other, an expectation decides; what it says of epochs like these is right all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from springtide.metrics.report import EpochReport

HALF_LIFE = 8.0
"""Epochs after which one counts half."""
ALIKE = 0.05
"""How much the expectations about rows weigh: as much as epochs whose rows vary by a fifth."""
CHEAP = 0.03
"""The expected cost of a row that is shed, over that of one that is kept: it is fetched, and a hash is taken of it."""
DOUBT = 0.25
"""The weight of the expectation that all cores work at once: that of epochs whose work varies by half a second."""
BESIDE = 0.2
"""The share of an epoch that may be for other things than its rows."""


@dataclass(frozen=True)
class StepSample:
    """One step in one epoch."""

    kept: float
    """Rows of sources that were for it."""
    shed: float
    """Rows of sources that it was spared."""
    useful_s: float
    """What all its instances spent on them, with reading and stateless steps."""
    alone_s: float | None = None
    """The same, with instances of different workers counted once, as they work side by side; None if not known."""


@dataclass(frozen=True)
class StepCost:
    """The useful time of a step in an epoch is `beside_s + kept * kept_s + shed * shed_s`."""

    beside_s: float
    """Opening its state, writing it."""
    kept_s: float
    shed_s: float

    def row_s(self, share: float) -> float:
        """What a row that is offered costs, if this share of them is kept."""
        return share * self.kept_s + (1 - share) * self.shed_s


@dataclass(frozen=True)
class EpochPace:
    """An epoch lasts `fixed_s + useful_s / cores`, if its rows take `useful_s` seconds on all cores together."""

    fixed_s: float
    """Planning, committing, starting tasks, and what steps take in every epoch."""
    cores: float
    """How many cores work at once, on average, while there are rows to work on."""

    def length_s(self, least_s: float, most_s: float) -> float:
        """How long epochs should take so that most of one is for its rows; no longer than `most_s` if that can be."""
        return min(max(least_s, self.fixed_s / BESIDE), max(most_s, 2 * self.fixed_s))


@dataclass(frozen=True)
class EpochCost:
    """The line of one app: what an epoch takes, given the rows that are offered in it and the share each step keeps."""

    pace: EpochPace
    steps: Mapping[str, StepCost]

    def row_s(self, shares: Mapping[str, float]) -> float:
        """How much longer an epoch takes for one more row that is offered."""
        return sum(cost.row_s(shares.get(step, 1.0)) for step, cost in self.steps.items()) / self.pace.cores

    def rows_within(self, epoch_s: float, shares: Mapping[str, float]) -> float | None:
        """The rows that may be offered in an epoch of this length; None if they seem to cost nothing."""
        row_s = self.row_s(shares)
        return max(0.0, epoch_s - self.pace.fixed_s) / row_s if row_s > 0 else None

    def epoch_for(self, rate: float, shares: Mapping[str, float], utilisation: float) -> float | None:
        """The shortest epochs that keep up with a rate if rows take this share of their time; None if none do."""
        left = 1 - rate * self.row_s(shares) / utilisation
        return self.pace.fixed_s / left if left > 0 else None


def lengths_s(reports: Sequence[EpochReport]) -> list[float]:
    """How long each epoch kept the app from the next one. What lies between two of them counts if rows waited then."""
    waited = [False, *(bool(report.lag_rows) for report in reports)]
    return [
        max(report.phases.total_s, (report.elapsed_s or 0.0) if rows_waited else 0.0)
        for report, rows_waited in zip(reports, waited, strict=False)
    ]


def step_cost(samples: Sequence[StepSample]) -> StepCost:
    """The line of one step. All useful time is expected to be for rows, and a row that is shed to be cheap.

    Without a part for every epoch, rows would seem the dearer the fewer an epoch has, and a limit on them would sink
    ever lower.
    """
    if not samples:
        return StepCost(0.0, 0.0, 0.0)
    kept, shed, useful = (np.array([getattr(s, name) for s in samples]) for name in ("kept", "shed", "useful_s"))
    weight = _weights(len(samples))
    mean_kept, mean_shed, mean_useful = (float(weight @ column) for column in (kept, shed, useful))
    rows = mean_kept + CHEAP * mean_shed
    if rows <= 0:
        return StepCost(mean_useful, 0.0, 0.0)
    expected = mean_useful / rows
    root = np.sqrt(weight)
    strong = np.sqrt(ALIKE)
    against = np.column_stack([root * (kept - mean_kept), root * (shed - mean_shed)])
    expects = np.array([[strong * rows, 0.0], [-CHEAP * strong * (rows + mean_shed), strong * (rows + mean_shed)]])
    answers = np.concatenate([root * (useful - mean_useful), [strong * rows * expected, 0.0]])
    slope = np.linalg.lstsq(np.vstack([against, expects]), answers, rcond=None)[0]
    kept_s = max(0.0, float(slope[0]))
    shed_s = min(max(0.0, float(slope[1])), kept_s)
    beside_s = min(max(0.0, mean_useful - kept_s * mean_kept - shed_s * mean_shed), float(useful.min()))
    return _through_the_mean(beside_s, kept_s, shed_s, (mean_kept, mean_shed, mean_useful))


def _through_the_mean(beside_s: float, kept_s: float, shed_s: float, mean: tuple[float, float, float]) -> StepCost:
    kept, shed, useful = mean
    for_rows = kept_s * kept + shed_s * shed
    if for_rows <= 0:
        return StepCost(useful, 0.0, 0.0)
    scale = max(0.0, useful - beside_s) / for_rows
    return StepCost(beside_s, scale * kept_s, scale * shed_s)


def pace(
    lengths: Sequence[float],
    useful: Sequence[float],
    cores: float,
    most: float | None = None,
    fewest: float = 1.0,
) -> EpochPace:
    """The line through the lengths of epochs; where they are all alike, the one that `cores` expects.

    Useful time is that for rows alone. Steps that do not wait for each other may keep more cores busy than one step is
    planned for: up to `most`. No fewer than `fewest` were seen to work at once.
    """
    weight = _weights(len(lengths))
    took, work = np.array(lengths), np.array(useful)
    mean_took, mean_work = float(weight @ took), float(weight @ work)
    spread = len(work) * float(weight @ (work - mean_work) ** 2)
    along = len(work) * float(weight @ ((work - mean_work) * (took - mean_took)))
    slope = (along + DOUBT / cores) / (spread + DOUBT)
    # More than all cores can't work, nor fewer than were seen to: epochs that were long for a moment's other work must
    # not make rows seem so dear that none are taken. And an epoch takes no less than its work.
    least = 1 / max(cores, most or 0.0)
    dearest = min(1 / fewest, mean_took / mean_work) if mean_work > 0 else 1 / cores
    slope = min(max(slope, least), max(dearest, least))
    return EpochPace(max(0.0, mean_took - slope * mean_work), 1 / slope)


def epoch_cost(
    lengths: Sequence[float],
    samples: Mapping[str, Sequence[StepSample]],
    cores: float,
    most: float | None = None,
    present: int | None = None,
) -> EpochCost:
    """The line of an app, from the lengths of its epochs and what each step did in them.

    What a row costs does not depend on the plan; how many cores work at once does, so that is told by the epochs of
    the `present` plan alone, the last ones.
    """
    steps = {step: step_cost(some) for step, some in samples.items()}
    beside_s = sum(cost.beside_s for cost in steps.values())
    useful = [max(0.0, sum(some[i].useful_s for some in samples.values()) - beside_s) for i in range(len(lengths))]
    since = 0 if present is None else len(lengths) - present
    fewest = at_once([some[since:] for some in samples.values()])
    return EpochCost(pace(lengths[since:], useful[since:], cores, most, fewest), steps)


def at_once(steps: Sequence[Sequence[StepSample]]) -> float:
    """The cores that work at once if steps wait for each other, and the workers of one step do not."""
    useful = sum(sample.useful_s for some in steps for sample in some)
    alone = sum(sample.useful_s if sample.alone_s is None else sample.alone_s for some in steps for sample in some)
    return max(1.0, useful / alone) if alone > 0 else 1.0


def _weights(count: int) -> npt.NDArray[np.float64]:
    """Of samples, the last one the newest; their sum is 1."""
    found = np.exp2(-np.arange(count - 1, -1, -1, dtype=np.float64) / HALF_LIFE)
    shares: npt.NDArray[np.float64] = found / found.sum()
    return shares
