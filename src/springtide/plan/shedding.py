"""Shed rates: the share of a producer's rows that each of its consumers gets in an epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.errors import BadValue

Edge = tuple[str, str]
"""From a source or a keyed step to a keyed step, or to a stateless one whose rows a sink takes."""
BITS = 63


@dataclass(frozen=True)
class Shedding:
    """Non-drop probabilities. A row's hash decides: what one consumer keeps, one that keeps more keeps too."""

    keep: Mapping[Edge, float] = field(default_factory=dict)
    """By edge; one that is not named keeps everything."""

    def __post_init__(self) -> None:
        for (producer, consumer), share in self.keep.items():
            if not 0 <= share <= 1:
                raise BadValue(f"rows kept from {producer!r} to {consumer!r}: expected 0 to 1, got {share}")

    @property
    def any(self) -> bool:
        """Whether anything is shed at all."""
        return any(share < 1 for share in self.keep.values())

    def share(self, producer: str, consumer: str) -> float:
        return self.keep.get((producer, consumer), 1.0)

    def to_json(self) -> list[list[str | float]]:
        return [[producer, consumer, share] for (producer, consumer), share in sorted(self.keep.items())]

    @classmethod
    def from_json(cls, fields: list[list[str | float]]) -> "Shedding":
        return cls({(str(producer), str(consumer)): float(share) for producer, consumer, share in fields})


NOTHING = Shedding()
"""Everything is kept."""


def threshold(share: float) -> int:
    """Rows whose hash, as a number of 63 bits, is below it are kept."""
    return min(round(share * (1 << BITS)), (1 << BITS) - 1) if share < 1 else 1 << BITS
