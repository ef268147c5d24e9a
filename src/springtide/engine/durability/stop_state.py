"""What is kept when an app stops to swap its workers."""

from dataclasses import dataclass, field

from springtide.blocks.manifest import States
from springtide.engine.durability.history import History


@dataclass
class StopState:
    """The state after the last epoch, and of the one in flight what its operators have made so far."""

    history: History
    captured: States = field(default_factory=dict)

    def store(self) -> States | None:
        """Make all of it durable, and tell what it is then; None if that could not be done."""
        kept = self.history.rest(self.captured)
        if kept is None:
            return None
        self.captured = kept
        return {**self.last(), **kept}

    def last(self) -> States:
        """The state that is durable."""
        found = self.history.durable
        return {} if found is None else found.operators
