"""The steps of a migration. Each takes effect between two epochs; none stops the app."""

from dataclasses import dataclass, field

from springtide.plan.moves import Move, SliceLoad


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
class KeepReplicas:
    """The former owners stand by for some seconds more, in case of a way back."""

    moves: tuple[Move, ...]
    seconds: float


Step = Stall | Supply | Flip | KeepReplicas


@dataclass(frozen=True)
class Options:
    """What a strategy may be told."""

    slices_an_epoch: int | None = None
    """For `progressive`: how many slices change owner at once; it knows a good number."""
    hottest_first: bool = False
    """For `progressive`: the slices with the most rows go first."""
    heat: SliceLoad = field(default_factory=dict)
    """How hot slices are, if that counts."""
    hold_s: float = 10.0
    """For `lazy`: how long the old owner is kept."""
    force: bool = False
    """For scaling: also to more workers than there is room for."""
