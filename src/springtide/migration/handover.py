"""Handover: the targets stand by first, then all slices change owner at one epoch boundary."""

from collections.abc import Sequence

from springtide.migration.step import Flip, Options, Step, Supply
from springtide.migration.strategy import LiveStrategy
from springtide.plan.moves import Move


def handover(moves: Sequence[Move], options: Options) -> tuple[Step, ...]:
    """ChronoStream, Rhino, Floe: the state is there before its owner is."""
    return (Supply(tuple(moves)), Flip(tuple(moves)))


HANDOVER = LiveStrategy(
    "handover", "the targets stand by first, then all slices change owner at one epoch boundary", handover
)
