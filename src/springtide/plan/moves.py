"""The slices that change their owner between two plans, and the steps in which they go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from springtide.errors import BadValue
from springtide.ids import SliceId, WorkerId

SliceLoad = Mapping[tuple[str, SliceId], float]
"""By operator and slice: the rows it has in an epoch, or anything else that is more where there is more to do."""


class BadMoves(BadValue):
    """Two plans that cannot be compared, or steps of no size."""


@dataclass(frozen=True)
class Move:
    """One slice of one operator goes from one worker to another."""

    operator: str
    slice: SliceId
    source: WorkerId
    target: WorkerId


def moves(operator: str, before: Sequence[WorkerId], after: Sequence[WorkerId]) -> tuple[Move, ...]:
    """What must move, in the order of the slices, so that the owners `before` become the owners `after`."""
    if len(before) != len(after):
        raise BadMoves(f"step {operator!r}: {len(before)} slices before and {len(after)} after; both must be the same")
    return tuple(
        Move(operator, SliceId(slice), source, target)
        for slice, (source, target) in enumerate(zip(before, after, strict=True))
        if source != target
    )


def steps(moves: Sequence[Move], k: int, heat: SliceLoad | None = None) -> tuple[tuple[Move, ...], ...]:
    """Batches of `k` moves, the last one perhaps smaller: the hottest slices first, else targets taking turns.

    A slice that `heat` does not name is cold (0.0); equally hot slices take turns between their targets.
    """
    if k < 1:
        raise BadMoves(f"steps of {k} moves; a step needs at least 1")
    order = _taking_turns(moves)
    if heat is not None:
        order.sort(key=lambda move: -heat.get((move.operator, move.slice), 0.0))
    return tuple(tuple(order[i : i + k]) for i in range(0, len(order), k))


def _taking_turns(moves: Sequence[Move]) -> list[Move]:
    by_target: dict[WorkerId, list[Move]] = {}
    for move in moves:
        by_target.setdefault(move.target, []).append(move)
    return [move for turn in zip_longest(*by_target.values()) for move in turn if move is not None]
