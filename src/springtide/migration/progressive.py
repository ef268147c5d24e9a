"""Progressive: many small handovers, a few slices an epoch."""

from collections.abc import Sequence

from springtide.migration.step import Flip, Options, Step, Supply
from springtide.migration.strategy import LiveStrategy
from springtide.plan.moves import Move, steps

AT_ONCE = 8
"""Slices that change owner together, if nothing else is said."""


def progressive(moves: Sequence[Move], options: Options) -> tuple[Step, ...]:
    """Megaphone: no epoch has more than a few slices to take over."""
    batches = steps(moves, options.slices_an_epoch or AT_ONCE, options.heat or None)
    return (Supply(tuple(moves)), *(Flip(batch) for batch in batches))


PROGRESSIVE = LiveStrategy("progressive", "many small handovers, a few slices an epoch", progressive, paced=True)
