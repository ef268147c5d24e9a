"""Progressive: many small handovers, a few slices an epoch."""

from collections.abc import Sequence

from springtide.migration.step import Flip, Options, Step, Supply
from springtide.plan.moves import Move, steps


def progressive(moves: Sequence[Move], options: Options) -> tuple[Step, ...]:
    """Megaphone: no epoch has more than a few slices to take over."""
    batches = steps(moves, options.slices_an_epoch, options.heat or None)
    return (Supply(tuple(moves)), *(Flip(batch) for batch in batches))
