"""What a strategy is: its name, what it does in a sentence, and how it is carried out.

The API, the command line, the simulator and the benchmarks take all of that from here.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from springtide.migration.phase import Phase
from springtide.migration.step import Options, Step
from springtide.plan.moves import Move

Steps = Callable[[Sequence[Move], Options], tuple[Step, ...]]
"""From the moves of a migration to its steps."""


@dataclass(frozen=True)
class LiveStrategy:
    """Moves slices while the app runs."""

    name: str
    summary: str
    steps: Steps
    paced: bool = False
    """Whether it may be told how many slices move at once, and in which order."""

    @classmethod
    def offered(cls, name: str, thing: object) -> "LiveStrategy":
        """What another package offers: a strategy, or a function from moves to steps with a docstring."""
        if isinstance(thing, cls):
            return thing
        if not callable(thing):
            raise TypeError(f"expected a LiveStrategy or a function from moves to steps, got {thing!r}")
        summary = (inspect.getdoc(thing) or "").partition("\n")[0]
        return cls(name, summary, thing)


@dataclass(frozen=True)
class StoppingStrategy:
    """Stops the app, replaces all workers, and starts it again."""

    name: str
    summary: str
    phases: tuple[Phase, ...]


Strategy = LiveStrategy | StoppingStrategy
