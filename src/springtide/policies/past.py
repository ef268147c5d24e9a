"""What was decided before, and what came of it: the part of the ledger that policies see."""

from collections.abc import Iterator
from dataclasses import dataclass

from springtide.policies.decision import Decision, Hold


@dataclass(frozen=True)
class AppState:
    """How an app did at some time: enough to tell whether a change helped."""

    workers: int
    throughput: float
    """Rows a second that were processed."""
    arriving: float
    """Rows a second that fell due."""
    lag_s: float
    lag_rows: float = 0.0
    imbalance: float = 1.0
    """The busiest worker's load over the mean."""
    crossing: float = 0.0
    """The share of bytes between keyed steps that goes from one worker to another."""


@dataclass(frozen=True)
class Entry:
    """One decision."""

    number: int
    at: float
    wanted: Decision
    """What the policy said."""
    decision: Decision
    """What was done in the end."""
    vetoes: tuple[str, ...] = ()
    """Why that is not the same."""
    gauge: AppState | None = None
    """How the app did when it was decided."""
    ended_at: float | None = None
    """When the change was over; None if nothing was changed, or it goes on."""
    pause_s: float | None = None
    """The longest that no epoch was published because of it."""
    outcome: str = ""
    """How the change ended: done, cancelled or failed, with its message."""
    after: AppState | None = None
    """How the app did once the change had settled."""
    helped: bool | None = None
    """Whether it did what it was for; None if that is not known yet."""


Past = tuple[Entry, ...]
"""Oldest first."""


def enacted(past: Past) -> Iterator[Entry]:
    """The entries that changed something, newest first."""
    return (entry for entry in reversed(past) if not isinstance(entry.decision, Hold))
