"""Partial pause: only the moving slices wait; their rows are kept, and seen by the new owner."""

from collections.abc import Sequence

from springtide.migration.step import Flip, Options, Stall, Step, Supply
from springtide.migration.strategy import LiveStrategy
from springtide.plan.moves import Move


def partial_pause(moves: Sequence[Move], options: Options) -> tuple[Step, ...]:
    """FUGU, Seep, FLUX: while a slice waits its state stands still, so it is copied once."""
    every = tuple(moves)
    return (Stall(every), Supply(every), Flip(every))


PARTIAL_PAUSE = LiveStrategy(
    "partial_pause", "only the moving slices wait, and the new owner sees their rows", partial_pause
)
