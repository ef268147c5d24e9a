"""What a policy is."""

from typing import Protocol

from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Decision
from springtide.policies.past import Past


class Policy(Protocol):
    """Decides. Pure: the same snapshot and past give the same decision."""

    def __call__(self, snapshot: Snapshot, past: Past) -> Decision: ...
