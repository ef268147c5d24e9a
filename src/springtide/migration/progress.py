"""A migration under way: its steps, how far it is, and how it ended."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from springtide.ids import Epoch, WorkerId
from springtide.migration.phase import Phase
from springtide.migration.state import MigrationState, checked
from springtide.migration.step import Step
from springtide.plan.moves import Move
from springtide.plan.ring import Ring


@dataclass
class Migration:
    """From the request to the end. The engine moves it on at epoch boundaries."""

    id: int
    strategy: str
    what: str
    """In words: what was asked for."""
    state: MigrationState = MigrationState.STARTING
    message: str = ""
    moves: tuple[Move, ...] = ()
    steps: tuple[Step, ...] = ()
    ring: Ring | None = None
    """The ring afterwards; None if it stays as it is."""
    leaving: frozenset[WorkerId] = frozenset()
    """Workers that are let go afterwards."""
    joining: frozenset[WorkerId] = frozenset()
    """Workers that came for it."""
    at: int = 0
    """The step it is at."""
    entered: bool = False
    """That step has begun."""
    flipped: list[Move] = field(default_factory=list)
    bytes: int = 0
    """Copied so far."""
    copied_before: int = 0
    """Bytes that had been copied before it was asked for."""
    cancelling: bool = False
    began_at: float = field(default_factory=time.time)
    """Seconds since the Unix epoch, as all that people read; what is waited for goes by a clock that never jumps."""
    ended_at: float | None = None
    began_s: float = field(default_factory=time.monotonic)
    took_s: float | None = None
    """From the request to the end."""
    phases: dict[str, float] = field(default_factory=dict)
    """When each state began, seconds since the Unix epoch."""
    stops: tuple[Phase, ...] = ()
    """Its phases, if it stops the app."""
    workers: int = 0
    """How many it wants, if it swaps them all."""
    swapped: int = 0
    """How many have come for that."""
    last_begun: Epoch | None = None
    """The last epoch that had begun when it was asked for."""
    deadline_s: float = 0.0
    """When its targets must be ready, on a clock that never jumps; then it is given up."""
    flipped_s: float = 0.0
    """When slices last changed their owner, on the same clock."""

    @property
    def under_way(self) -> bool:
        return self.ended_at is None

    @property
    def begun(self) -> bool:
        """Its moves are known, and what it needs has come; never so if it stops the app."""
        return self.under_way and bool(self.steps)

    @property
    def step(self) -> Step | None:
        return self.steps[self.at] if self.at < len(self.steps) else None

    def begin(self, moves: Sequence[Move], steps: Sequence[Step]) -> None:
        """All that it needs is there."""
        self.moves, self.steps = tuple(moves), tuple(steps)
        self.enter(MigrationState.COPYING)

    def enter(self, state: MigrationState) -> None:
        """WrongTurn if that state cannot follow the present one."""
        self.state = checked(self.state, state)
        self.phases[state.value] = time.time()

    def go_on(self) -> None:
        """To the next step."""
        self.at, self.entered = self.at + 1, False

    def end(self, state: MigrationState, message: str = "") -> None:
        """WrongTurn if it cannot end so now."""
        self.state, self.message, self.ended_at = checked(self.state, state), message, time.time()
        self.phases[state.value] = self.ended_at
        self.took_s = time.monotonic() - self.began_s

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "strategy": self.strategy,
            "what": self.what,
            "state": self.state.value,
            "done": self.swapped if self.stops else 0 if self.cancelling else len(self.flipped),
            "total": self.workers if self.stops else len(self.moves),
            "unit": "workers" if self.stops else "slices",
            "bytes": self.bytes,
            "message": self.message,
            "seconds": round(time.monotonic() - self.began_s if self.took_s is None else self.took_s, 3),
            "phases": self.phases,
        }
