"""Every migration gets an account in the checkpoint: when it has ended, and when the output is steady again."""

from dataclasses import replace

import pytest

from springtide.blocks.store import Store, open_store
from springtide.control import migration_log as measuring
from springtide.control.migration_log import Measuring, MigrationLog, read_migrations
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures
from springtide.metrics.migration.steadiness import Steadiness
from springtide.metrics.report import EpochReport, Phases
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState

STEADY = Steadiness(window_s=10.0, smooth_s=2.0, calm_s=20.0)


@pytest.fixture
def store(tmp_path: object) -> Store:
    return open_store(str(tmp_path))


def report(epoch: int, ended_at: float, *, replayed: bool = False) -> EpochReport:
    phases = Phases(0.0, 0.9, 0.0, 0.0, 0.0)
    return EpochReport("app", epoch, ended_at, 1, replayed, 8, 8, 0, 0.5, 0, phases, ())


class Life:
    """An app with an epoch a second, and a migration if there is one."""

    def __init__(self, store: Store) -> None:
        self.reports: list[EpochReport] = []
        self.migration: Migration | None = None
        self.measuring = Measuring(MigrationLog(store), lambda: self.migration, STEADY)

    def epochs(self, count: int) -> None:
        for _ in range(count):
            number = len(self.reports)
            self.reports.append(report(number, 100.0 + number))
            self.measuring(self.reports[-1])

    def migrate(self, strategy: str, at: float, seconds: float) -> Migration:
        found = self.migration = Migration(1, strategy, "from 2 to 4 workers", began_at=at)
        found.phases = {"starting": at, "copying": at + 0.1, "done": at + seconds}
        found.state, found.ended_at = MigrationState.DONE, at + seconds
        return found


def test_it_is_told_at_its_end_and_once_more_when_the_output_is_steady(store: Store) -> None:
    life = Life(store)
    life.epochs(12)
    assert read_migrations(store) == []
    life.migrate("handover", 111.5, 2.0)
    life.epochs(3)
    (first,) = read_migrations(store)
    assert (first.number, first.state, first.course.strategy) == (1, "done", "handover")
    assert first.measures.restore_s == pytest.approx(1.0)
    assert first.measures.rebalance_s == pytest.approx(2.0)
    assert first.measures.stabilise_s is None, "nobody can know yet"
    life.epochs(14)
    (steady,) = read_migrations(store)
    assert steady.measures == replace(first.measures, stabilise_s=0.0)
    life.epochs(5)
    assert read_migrations(store) == [steady]


def test_one_that_another_follows_is_told_as_far_as_it_is_known(store: Store) -> None:
    life = Life(store)
    life.epochs(12)
    life.migrate("handover", 111.5, 1.0)
    life.epochs(2)
    life.migrate("lazy", 113.5, 1.0)
    life.epochs(30)
    first, second = read_migrations(store)
    assert (first.number, first.course.strategy, first.measures.stabilise_s) == (1, "handover", None)
    assert (second.number, second.course.strategy, second.measures.stabilise_s) == (2, "lazy", 0.0)


def test_numbers_go_on_after_an_earlier_driver(store: Store) -> None:
    for number in (1, 2):
        life = Life(store)
        life.epochs(12)
        life.migrate("handover", 111.5, 1.0)
        life.epochs(30)
        assert [account.number for account in read_migrations(store)] == list(range(1, number + 1))


def test_epochs_are_looked_at_a_few_times_and_not_each_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of every epoch in the thread that runs them."""
    looks: list[float] = []
    measured = measuring.measure

    def counted(course: Course, reports: list[EpochReport], steadiness: Steadiness) -> MigrationMeasures:
        looks.append(reports[-1].ended_at)
        return replace(measured(course, reports, steadiness), stabilise_s=None)

    monkeypatch.setattr(measuring, "measure", counted)
    life = Life(store)
    life.epochs(12)
    life.migrate("handover", 111.5, 1.0)
    life.epochs(200)
    assert looks[0] == 113.0, "at once when it has ended"
    assert len(looks) <= measuring.PATIENCE * measuring.LOOKS + 2


def test_only_so_many_epochs_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what they tell of steps, whatever that is."""
    monkeypatch.setattr(measuring, "REMEMBERED", 15)
    life = Life(store)
    life.epochs(100)
    assert [(r.epoch, r.operators) for r in life.measuring._reports] == [(n, ()) for n in range(85, 100)]
    life.migrate("handover", 199.5, 2.0)
    life.epochs(14)
    (account,) = read_migrations(store)
    assert account.measures.restore_s == pytest.approx(1.0), "those just before it are there"


def test_output_that_never_becomes_steady_is_given_up(store: Store) -> None:
    life = Life(store)
    life.epochs(12)
    life.migrate("handover", 111.5, 1.0)
    for number in range(12, 200):
        life.reports.append(replace(report(number, 100.0 + number), rows_out=8 * (number % 40)))
        life.measuring(life.reports[-1])
    (account,) = read_migrations(store)
    assert account.measures.stabilise_s is None
