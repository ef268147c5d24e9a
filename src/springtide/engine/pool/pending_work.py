"""What waits for the next epoch, and would have to wait for ever if no row came."""

from springtide.engine.migrate.migrator import Migrator
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.migration.phase import Point


def waiting(shared: SharedRoster, migrator: Migrator) -> str | None:
    """What could be done at the beginning of an epoch now, in words; None if there is nothing."""
    with shared.held() as roster:
        migration = migrator.current
        if migration is not None and migrator.stopping.due(Point.EPOCHS):
            return f"migration {migration.id} waits for the app to stop"
        if not migrator.swapping and (lost := roster.lost()):
            return f"worker {', '.join(sorted(lost))} is lost"
        if migration is not None and migrator.ripe:
            return f"migration {migration.id} can take a step"
        if not migrator.busy and roster.unsettled():
            return "workers can begin to stand by, cease to, or go"
        return None
