"""What the controller decides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from springtide.policies.shedding.model import Edge, InstanceKey
from springtide.policies.words import percent


@dataclass(frozen=True)
class InstanceMove:
    """Let an instance run on another worker."""

    instance: InstanceKey
    source: str
    target: str
    cpu: float
    """The cores that it takes at its minimum accuracy."""
    reason: str


class Shed(NamedTuple):
    """A query that sheds, and what holds it back."""

    query: str
    accuracy: float
    minimum: float
    task: str
    """The task that cannot do more."""
    cpu: float
    """The cores that an instance of it would take for all rows."""
    worker: str | None
    """The machine that is too small; None if that is not the cause."""
    cores: float
    """What that has for all its tasks."""
    warm_up: bool
    """Whether the cause is an instance that warms up on a worker of the task."""

    @property
    def reason(self) -> str:
        if self.warm_up:
            why = f"an instance warms up on a worker of {self.task}"
        elif self.worker is None:
            why = f"an instance of {self.task} would need {self.cpu:.2f} cores for all, and has one"
        else:
            have = f"{self.worker} has {self.cores:.2f} cores for all its tasks"
            why = f"{have}, and {self.task} would take {self.cpu:.2f} an instance"
        if self.accuracy < self.minimum - 1e-9:
            room = f"there is room for {percent(self.accuracy)} of {self.query}"
            return f"{room}, less than its minimum of {percent(self.minimum)}: {why}"
        return f"{self.query} keeps {percent(self.accuracy)} (minimum {percent(self.minimum)}): {why}"


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
    moves: tuple[InstanceMove, ...]
    current: Mapping[str, float]
    """By task: the accuracy that was measured."""
    full_cpu: Mapping[str, float]
    """By task: the cores that an instance takes at full accuracy, where that is known; for the next cycle's model."""
    below_minimum: tuple[str, ...]
    """Queries whose minimum accuracy cannot be held, on whatever worker; more of them are needed, or more instances."""
    explain: Callable[[], tuple[Shed, ...]] = field(repr=False, compare=False)
    """The queries that shed, worked out when somebody asks."""

    @cached_property
    def shed(self) -> tuple[Shed, ...]:
        """The queries that shed, and why."""
        return self.explain()

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each move and each query that sheds, or one that says that nothing is shed."""
        found = tuple([move.reason for move in self.moves] + [each.reason for each in self.shed])
        return found or ("nothing is shed: every query has all the CPU that it needs",)

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)
