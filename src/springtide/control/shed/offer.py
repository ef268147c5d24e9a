"""What an app brings to a cycle of the economy: what comes to it, and what that costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from springtide.control.shed.config import SheddingConfig
from springtide.metrics.load.epoch_cost import EpochCost
from springtide.metrics.snapshot import Snapshot

CHANCE = 3.0
"""Standard deviations that a query is kept away from its minimum, as it is by chance which rows are shed."""
MARGIN = 0.05
"""The most for that: with few rows chance has too much of a say, and overload has to be met all the same."""
NOTHING = 0.02
"""Of the rows that come: fewer that are missing are no more than the noise of measuring."""
LIKE = 0.05
"""Rates that differ by less are alike."""
GRAIN = 0.005
"""The least that a query is to have changes in steps of this size."""


@dataclass(frozen=True)
class Offer:
    """What one app brought to a cycle."""

    snapshot: Snapshot
    cost: EpochCost
    rates: Mapping[str, float]
    """By source: rows a second to be dealt with, those that wait too."""
    least: Mapping[str, float]
    """By query: what it is to have at least, a little more than its minimum accuracy."""
    kept: Mapping[str, float]
    """By step: rows of sources a second that were for it."""
    due: Mapping[str, float]
    """By step: rows of sources a second that are to be dealt with."""
    epoch_s: float
    """How long its epochs are to take."""
    idle: float
    """The cores that are planned for and lost while an epoch works on no rows."""
    longest_s: float
    """How long they may take."""
    allowed: float
    """Rows a second that it keeps up with in the longest epochs, with all queries at their minimum accuracy."""
    keeps_up: bool = False
    """Whether its last epochs took all rows that came, shed none, and were short."""

    @property
    def comes(self) -> float:
        """Rows a second that come in, beside those that wait."""
        return self.snapshot.arriving

    @property
    def total(self) -> float:
        """Rows a second to be dealt with, those that wait too."""
        return sum(self.rates.values())

    @property
    def missing(self) -> float:
        """Rows a second that come in and have to wait: not even the minimum accuracies leave room for them."""
        found = self.comes - self.allowed
        return found if found > NOTHING * self.comes else 0.0

    def rows_an_epoch(self, shares: Mapping[str, float]) -> float | None:
        """The rows that the longest epoch has room for; None if they seem to cost nothing."""
        return self.cost.rows_within(self.longest_s, shares)


def safely(minimum: float, rows: float) -> float:
    """The minimum accuracy and three standard deviations of what is kept of `rows` rows, but no more than MARGIN."""
    chance = CHANCE * math.sqrt(minimum * (1 - minimum) / max(rows, 1.0))
    return min(1.0, math.ceil((minimum + min(chance, MARGIN)) / GRAIN - 1e-9) * GRAIN)


def keeps_up(snapshot: Snapshot, usual_s: float, fresh_s: float) -> bool:
    """Whether epochs took all rows that came, shed none of them, and were no longer than planned.

    Rows that came within the last `fresh_s` are due for the next epoch. What comes must be what was taken: epochs
    before a load that has jumped tell nothing about it.
    """
    taken = sum(source.taken for source in snapshot.sources)
    return (
        snapshot.epoch_s <= usual_s
        and snapshot.arriving <= (1 + LIKE) * taken
        and all(source.lag_rows <= source.rate * fresh_s for source in snapshot.sources)
        and not any(snapshot.shed.values())
    )


def longest_s(snapshot: Snapshot, cost: EpochCost, shares: Mapping[str, float], config: SheddingConfig) -> float:
    """How long an epoch may take. The longer it is, the more of it is for rows: so as long as rows have to wait."""
    usual_s = max(config.longest_s, 4 * cost.pace.fixed_s)
    if snapshot.arriving <= sustained(cost, usual_s, shares):
        return usual_s
    waiting_s = max((s.lag_rows / s.rate for s in snapshot.sources if s.rate > 0), default=0.0)
    return max(usual_s, min(waiting_s, 2 * config.cycle_s))


def sustained(cost: EpochCost, epoch_s: float, shares: Mapping[str, float]) -> float:
    """Rows a second that epochs of a length get through, one after the other."""
    rows = cost.rows_within(epoch_s, shares)
    return float("inf") if rows is None else rows / epoch_s
