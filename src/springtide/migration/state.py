"""The states of a migration, and which may follow which."""

from collections.abc import Mapping
from enum import StrEnum


class MigrationState(StrEnum):
    """Live migrations copy and move; those that stop the app prepare, commit, swap and init."""

    STARTING = "starting"
    COPYING = "copying"
    MOVING = "moving"
    PREPARE = "prepare"
    COMMIT = "commit"
    SWAP = "swap"
    INIT = "init"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def under_way(self) -> bool:
        """Whether it has not ended."""
        return bool(NEXT[self])


class WrongTurn(RuntimeError):
    """A migration was to enter a state that cannot follow the one it is in: a mistake in the engine."""

    def __init__(self, before: MigrationState, after: MigrationState) -> None:
        super().__init__(before, after)
        self.before, self.after = before, after

    def __str__(self) -> str:
        return f"expected a state that follows {self.before.value!r}, got {self.after.value!r}"


_ENDS = frozenset({MigrationState.DONE, MigrationState.CANCELLED, MigrationState.FAILED})
NEXT: Mapping[MigrationState, frozenset[MigrationState]] = {
    MigrationState.STARTING: frozenset({MigrationState.COPYING, MigrationState.PREPARE}) | _ENDS,
    MigrationState.COPYING: frozenset({MigrationState.MOVING}) | _ENDS,
    MigrationState.MOVING: frozenset({MigrationState.MOVING}) | _ENDS,
    MigrationState.PREPARE: frozenset({MigrationState.COMMIT, MigrationState.SWAP}) | _ENDS,
    MigrationState.COMMIT: frozenset({MigrationState.SWAP, MigrationState.FAILED}),
    MigrationState.SWAP: frozenset({MigrationState.INIT, MigrationState.FAILED}),
    MigrationState.INIT: frozenset({MigrationState.DONE, MigrationState.FAILED}),
    MigrationState.DONE: frozenset(),
    MigrationState.CANCELLED: frozenset(),
    MigrationState.FAILED: frozenset(),
}
"""By state: those that may follow."""


def checked(before: MigrationState, after: MigrationState) -> MigrationState:
    """The state that follows; WrongTurn if it cannot."""
    if after not in NEXT[before]:
        raise WrongTurn(before, after)
    return after
