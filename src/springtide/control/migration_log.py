"""Every migration is measured, whoever asked for it, and what was found is kept in the checkpoint."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from springtide import codec
from springtide.blocks.store import Store
from springtide.control.json_lines import Lines
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures, measure
from springtide.metrics.migration.steadiness import Steadiness
from springtide.metrics.report import EpochReport
from springtide.migration.progress import Migration

DIRECTORY = "migrations"
CHUNK = 32
"""Migrations in one file."""
LOOKS = 4
"""Times a window that it is looked whether the output has become steady: each look reads all epochs around."""
PATIENCE = 3.0
"""Windows after which an output that has not become steady is given up."""
REMEMBERED = 2_048
"""Epochs that a migration is measured by: those before it, and those since."""
USUAL = Steadiness()


@dataclass(frozen=True)
class Account:
    """A migration as it went."""

    number: int
    what: str
    """In words: what was asked for."""
    state: str
    message: str
    course: Course
    measures: MigrationMeasures

    def to_json(self) -> dict[str, Any]:
        """Flat: the fields of the course beside its own."""
        fields: dict[str, Any] = codec.plain(self)
        return {**fields, **fields.pop("course"), "measures": self.measures.to_json()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Account":
        return codec.convert(cls, {**fields, "course": fields})


class MigrationLog:
    """Accounts by number; goes on with those of an earlier driver."""

    def __init__(self, store: Store) -> None:
        self._lines = Lines(store, DIRECTORY, CHUNK)
        self.next = 1
        for account in read_migrations(store):
            self._lines.remember(account.number, account.to_json())
            self.next = account.number + 1

    def put(self, account: Account) -> None:
        """Keep an account, in place of an earlier one of the same number."""
        self._lines.put(account.number, account.to_json())
        self.next = max(self.next, account.number + 1)


def read_migrations(store: Store) -> list[Account]:
    """All that were measured, oldest first."""
    return [Account.from_json(fields) for fields in Lines(store, DIRECTORY, CHUNK).read()]


def course_of(migration: Migration) -> Course:
    """What has to be known of a migration to measure it."""
    return Course(
        migration.strategy, migration.began_at, migration.ended_at, dict(migration.phases), migration.last_begun
    )


class Measuring:
    """Told of every epoch; keeps an account when a migration has ended, and again when the output is steady."""

    def __init__(
        self,
        log: MigrationLog,
        current: Callable[[], Migration | None],
        steadiness: Steadiness = USUAL,
    ) -> None:
        self._log, self._current, self._steadiness = log, current, steadiness
        self._reports: deque[EpochReport] = deque(maxlen=REMEMBERED)
        """Without what they tell of each step, which is most of them."""
        self._migration: Migration | None = None
        self._number = 0
        self._next_look: float | None = None
        """None once all is known of it."""

    def __call__(self, report: EpochReport) -> None:
        """An epoch has ended."""
        self._reports.append(replace(report, operators=()))
        migration = self._current()
        if migration is not self._migration:
            if self._migration is not None and self._next_look is not None:
                self._keep(self._migration)  # As far as it is known: what comes now belongs to another one.
            self._migration, self._number, self._next_look = migration, self._log.next, 0.0
        if migration is None or migration.ended_at is None or self._next_look is None:
            return
        if report.ended_at > max(migration.ended_at, self._next_look):
            account = self._keep(migration)
            window_s = self._steadiness.window_s
            late = report.ended_at > migration.ended_at + PATIENCE * window_s
            known = late or account.measures.stabilise_s is not None
            self._next_look = None if known else report.ended_at + window_s / LOOKS

    def _keep(self, migration: Migration) -> Account:
        course = course_of(migration)
        since = migration.began_at - self._steadiness.calm_s
        near = [report for report in self._reports if report.ended_at > since]
        measures = measure(course, near, self._steadiness)
        account = Account(self._number, migration.what, migration.state.value, migration.message, course, measures)
        self._log.put(account)
        return account
