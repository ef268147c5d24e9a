"""What a policy can decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.ids import SliceId, WorkerId


@dataclass(frozen=True)
class Hold:
    """Leave everything as it is."""

    reason: str
    warning: bool = False
    """Something is wrong that the policy can't mend; people should know."""


@dataclass(frozen=True)
class Scale:
    """Run on another number of workers."""

    workers: int
    reason: str
    parallelism: Mapping[str, int] = field(default_factory=dict)
    """By operator: the instances that it needs."""


@dataclass(frozen=True)
class Rebalance:
    """Let a worker own some slices of an operator that another one owns."""

    operator: str
    slices: frozenset[SliceId]
    source: WorkerId
    target: WorkerId
    reason: str


Decision = Hold | Scale | Rebalance


def action(decision: Decision) -> str:
    """A decision in a few words, the same words for the same action."""
    if isinstance(decision, Scale):
        return f"scale to {decision.workers}"
    if isinstance(decision, Rebalance):
        slices = ",".join(map(str, sorted(decision.slices)))
        return f"move {decision.operator}:{slices} to {decision.target}"
    return "hold"
