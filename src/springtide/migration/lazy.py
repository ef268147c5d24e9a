"""Lazy: the new owner serves from the next epoch on, the old one is let go later."""

from collections.abc import Sequence

from springtide.migration.step import Flip, KeepReplicas, Options, Step, Supply
from springtide.migration.strategy import LiveStrategy
from springtide.plan.moves import Move


def lazy(moves: Sequence[Move], options: Options) -> tuple[Step, ...]:
    """N-Storm's lazy killing: the way back stays open for a while."""
    every = tuple(moves)
    return (Supply(every), Flip(every), KeepReplicas(every, options.hold_s))


LAZY = LiveStrategy("lazy", "like handover, and the old owners stand by for a while", lazy)
