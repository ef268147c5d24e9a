"""Migrations that stop the app, without Spark: where it stops, in which order things happen, and what is refused."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest
from office_kit import SLICES, STEP, A, B, C, D, Office, until
from waiting import wait_until

from springtide.blocks.manifest import OperatorState, States
from springtide.engine.durability.stop_state import StopState
from springtide.engine.executors.cluster import NotEnoughWorkers
from springtide.ids import WorkerId
from springtide.migration.errors import Busy, Refused
from springtide.migration.phase import Point
from springtide.migration.state import MigrationState
from springtide.migration.step import Options
from springtide.migration.strategies import STOPPING

NEW = {STEP: OperatorState(keys=7)}
OLD = {STEP: OperatorState(keys=3)}


@dataclass
class FakeKeeping:
    """A store that takes in all, or nothing."""

    works: bool = True
    stored_with: list[frozenset[WorkerId]] = field(default_factory=list)
    """Who was there when something was stored."""
    there: Callable[[], frozenset[WorkerId]] = frozenset

    def store(self) -> States | None:
        self.stored_with.append(self.there())
        return NEW if self.works else None

    def last(self) -> States:
        return OLD


def stopped(office: Office, *, works: bool = True) -> FakeKeeping:
    """Let the app stop, as it would at its next boundary."""
    assert office.stopping.due(Point.EPOCHS)
    keeping = FakeKeeping(works, there=office.cluster.alive)
    office.stopping.carry_out(cast(StopState, keeping))
    return keeping


@pytest.mark.parametrize(
    ("strategy", "points"),
    [
        ("restart", {Point.ANYWHERE, Point.OPERATORS, Point.EPOCHS}),
        ("capture", {Point.OPERATORS, Point.EPOCHS}),
        ("drain", {Point.EPOCHS}),
    ],
)
def test_each_stops_where_it_should_and_only_once(strategy: str, points: set[Point]) -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    assert not any(office.stopping.due(point) for point in Point)
    office.migrator.scale(2, strategy, Options())
    assert {point for point in Point if office.stopping.due(point)} == points
    stopped(office)
    assert not any(office.stopping.due(point) for point in Point)


@pytest.mark.parametrize("strategy", sorted(STOPPING))
def test_all_workers_are_others_and_have_their_state(strategy: str) -> None:
    office = Office([A, B], [C, D, WorkerId("e")])
    office.epoch()
    migration = office.migrator.scale(3, strategy, Options())
    keeping = stopped(office)
    assert migration.state == "done"
    assert office.cluster.dismissed == {A, B}
    assert sorted(office.shares().values()) == [SLICES // 3, SLICES // 3, SLICES - 2 * (SLICES // 3)]
    assert set(office.shares()) == {C, D, "e"}
    assert list(migration.phases) == [
        *(["prepare", "commit"] if strategy != "restart" else ["prepare"]),
        "swap",
        "init",
        "done",
    ]
    ((init, states, workers),) = office.restored
    assert states == (OLD if strategy == "restart" else NEW), "restart goes on from the last checkpoint"
    assert init.in_order == (strategy != "capture")
    assert set(workers) == {C, D, "e"}
    assert keeping.stored_with == ([] if strategy == "restart" else [{A, B}]), "it is stored while its workers live"
    assert office.roster.served is None, "nobody takes over from those who are gone"
    office.epoch()
    assert not office.roster.lost()


def test_jobs_are_cancelled_for_restart_alone() -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    office.migrator.scale(2, "drain", Options())
    stopped(office)
    assert not office.cancelled.is_set()
    office = Office([A, B], [C, D])
    office.epoch()
    office.migrator.scale(2, "restart", Options())
    until(office.cancelled.is_set)


@pytest.mark.parametrize("strategy", ["drain", "capture"])
def test_state_that_cannot_be_stored_leaves_everything_as_it_was(strategy: str) -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    plan = office.roster.plan
    migration = office.migrator.scale(4, strategy, Options())
    stopped(office, works=False)
    assert migration.state == "failed"
    assert "could not be made durable" in migration.message
    assert office.roster.plan is plan
    assert office.roster.wanted == 2
    assert not office.cluster.dismissed


def test_one_at_a_time_and_back_only_before_it_has_stopped() -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    first = office.migrator.scale(1, "drain", Options())
    with pytest.raises(Busy, match="wait for it, or cancel it"):
        office.migrator.scale(2, "capture", Options())
    office.migrator.cancel()
    assert (first.state, office.roster.wanted) == ("cancelled", 2)
    assert not office.stopping.due(Point.EPOCHS)
    second = office.migrator.scale(1, "drain", Options())
    second.enter(MigrationState.SWAP)
    with pytest.raises(Refused, match="cannot go back"):
        office.migrator.cancel()


def test_fewer_workers_than_asked_for_go_on_with_all_of_it() -> None:
    office = Office([A, B], [C])
    office.epoch()
    migration = office.migrator.scale(2, "drain", Options())
    stopped(office)
    assert migration.state == "failed"
    assert "of 2 workers 1 came" in migration.message
    assert office.shares() == {C: SLICES}
    assert office.roster.wanted == 2, "another one is taken on when it comes"


def test_no_worker_at_all_is_an_error_of_the_app() -> None:
    office = Office([A, B])
    office.epoch()
    office.migrator.scale(2, "drain", Options())
    with pytest.raises(NotEnoughWorkers):
        stopped(office)


def test_workers_of_other_apps_are_left_alone() -> None:
    office = Office([A, B], [C])
    office.epoch()
    office.cluster.alone = False
    with pytest.raises(Refused, match="other apps work on them"):
        office.migrator.scale(1, "drain", Options())
    assert office.migrator.current is None


@pytest.mark.parametrize("strategy", sorted(STOPPING))
def test_one_that_is_cancelled_just_before_it_begins_changes_nothing(strategy: str) -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    plan = office.roster.plan
    migration = office.migrator.scale(1, strategy, Options())
    assert office.stopping.due(Point.EPOCHS)
    office.migrator.cancel()
    assert office.stopping.carry_out(cast(StopState, FakeKeeping())) is plan
    assert (migration.state, office.cluster.dismissed) == ("cancelled", set())


def test_nothing_is_cancelled_any_more_once_the_app_has_ended() -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    before = set(threading.enumerate())
    office.migrator.scale(1, "restart", Options())

    def killing() -> bool:
        return any(thread.name == "springtide-killing" for thread in set(threading.enumerate()) - before)

    assert killing()
    office.stopping.stop()
    wait_until("its end", lambda: not killing(), 20.0)
