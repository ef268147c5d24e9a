"""What can be asked of a running app, and how it says no."""

from typing import Any, Protocol

from springtide.migration.errors import Busy, Refused, Unknown
from springtide.migration.state import MigrationState
from springtide.migration.step import Options

__all__ = ["Busy", "Controls", "Options", "Refused", "Unknown", "under_way"]

USUAL = Options()

DONE = MigrationState.DONE.value


class Controls(Protocol):
    """What can be asked of a running app.

    Every answer can be written as JSON. Calls come from several threads, but only one of `scale`, `move`
    and `cancel` at a time. They return at once: a migration goes on by itself, and `migration` follows it.
    """

    app: str

    def status(self) -> dict[str, Any]:
        """How the app does: epoch, plan version, and the figures of the last epoch by their names."""

    def workers(self) -> list[dict[str, Any]]:
        """Each worker's id, host, zone, slots, state, slices, replicas and resident_bytes.

        The state is starting, ready, draining or lost; slices and replicas are counts.
        """

    def plan(self) -> dict[str, Any]:
        """The plan in force: version, workers, operators.

        An operator has `owners` and `replicas`, each by worker as ranges of slices: `{"w1": "0-31,64"}`.
        """

    def scale(self, workers: int, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        """Start a migration to that many workers, and return its progress; Busy if there is one already."""

    def move(self, operator: str, slices: str, to: str, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        """Start a migration of some slices to a worker, and return its progress; Busy if there is one already."""

    def migration(self) -> dict[str, Any] | None:
        """The current migration or else the last: id, strategy, state, done, total, unit, bytes, message.

        The state is starting, copying, moving, done, cancelled or failed; `done` of `total` slices have
        moved; `bytes` were copied. If it stops the app, starting, prepare, commit, swap, init, done, cancelled or
        failed; the unit is workers, and `done` of `total` have come. None if there never was one.
        """

    def cancel(self) -> dict[str, Any]:
        """Cancel the migration under way, and return its progress; Refused if there is none."""

    def adapt(self, told: dict[str, Any]) -> dict[str, Any]:
        """Let the app adapt by itself from now on, in this way and no other; what it was told, in full."""

    def rest(self) -> dict[str, Any]:
        """Let the app adapt no more; Refused if it does not."""

    def metrics(self) -> bytes:
        """All metrics, for Prometheus."""


def under_way(migration: dict[str, Any] | None) -> bool:
    """Has this migration still to end?"""
    return migration is not None and migration["state"] in {state for state in MigrationState if state.under_way}
