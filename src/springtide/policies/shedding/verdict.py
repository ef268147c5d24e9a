"""What the controller decides."""

from collections.abc import Mapping
from dataclasses import dataclass

from springtide.policies.shedding.model import Edge, InstanceKey


@dataclass(frozen=True)
class Move:
    """Let an instance run on another worker."""

    instance: InstanceKey
    source: str
    target: str
    cpu: float
    """The cores that it takes at its minimum accuracy."""
    reason: str


@dataclass(frozen=True)
class QodDecision:
    """How accurate each query is to be, what is shed for that and where, and who moves."""

    accuracy: Mapping[str, float]
    """By query: the share of the input that it is to work on, 0 to 1."""
    task_accuracy: Mapping[str, float]
    """By task, the same for all its instances."""
    admit: Mapping[str, float]
    """By source: the probability of keeping a row that it fetched."""
    keep: Mapping[Edge, float]
    """By edge between tasks: the probability of keeping a row."""
    moves: tuple[Move, ...]
    current: Mapping[str, float]
    """By task: the accuracy that was measured."""
    full_cpu: Mapping[str, float]
    """By task: the cores that an instance takes at full accuracy, where that is known; for the next cycle's model."""
    below_minimum: tuple[str, ...]
    """Queries whose minimum accuracy cannot be held, on whatever worker; more of them are needed, or more instances."""
    reasons: tuple[str, ...]
    """A sentence for each query that sheds and for each move, or one that says that nothing is shed."""

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)

    @property
    def sheds(self) -> bool:
        return any(accuracy < 1 for accuracy in self.accuracy.values())
