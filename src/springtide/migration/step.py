"""The steps of a migration. Each takes effect between two epochs; none stops the app."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from springtide.ids import SliceId
from springtide.plan.moves import Move


@dataclass(frozen=True)
class Stall:
    """From the next epoch until they flip, the rows of these slices are kept for later."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Supply:
    """The targets begin to stand by for the moving slices; over when all of them could take over."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Flip:
    """The targets own these slices from the next epoch on."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Hold:
    """The former owners stand by for so long, in case of a way back."""

    moves: tuple[Move, ...]
    seconds: float


Step = Stall | Supply | Flip | Hold


@dataclass(frozen=True)
class Options:
    """What a strategy may be told."""

    slices_an_epoch: int = 8
    """For `progressive`: how many slices change owner at once."""
    heat: Mapping[SliceId, float] = field(default_factory=dict)
    """For `progressive`: hotter slices go first."""
    hold_s: float = 10.0
    """For `lazy`: how long the old owner is kept."""


Strategy = Callable[[Sequence[Move], Options], tuple[Step, ...]]
