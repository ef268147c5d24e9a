"""When an epoch without rows is due, and when none is: without Spark."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from office_kit import LIVE, SLICES, STEP, A, B, C, D, Office, until

from springtide.engine.epoch.runner import EpochRunner
from springtide.engine.lifecycle.idle_epochs import AGAIN_S, QUIET_S, IdleEpochs, NudgePace
from springtide.engine.pool import pending_work as due
from springtide.ids import SliceId
from springtide.migration.step import Options
from springtide.migration.strategies import STOPPING
from springtide.testing import ManualClock


def waiting(office: Office) -> str | None:
    return due.waiting(office.shared, office.migrator)


def at_rest(there: list[Any], spare: list[Any] | None = None) -> Office:
    office = Office(there, spare or [])
    office.epoch()
    assert waiting(office) is None, "nothing is due without a reason"
    return office


def idle_until_nothing_waits(office: Office, most: int = 40) -> int:
    """Epochs that happen only when something waits for one, and copies beside them; tells how many."""
    for epochs in range(most):
        office.copied()
        if waiting(office) is None:
            return epochs
        office.epoch(checkpoint=False)
    raise AssertionError(f"still {waiting(office)} after {most} epochs")


@pytest.mark.parametrize("strategy", LIVE)
def test_a_migration_gets_to_its_end_by_the_epochs_it_asks_for(strategy: str) -> None:
    office = at_rest([A, B], [C])
    options = Options(2 if strategy == "progressive" else None, hold_s=0.0)
    grown = office.migrator.scale(3, strategy, options)
    until(lambda: grown.begun)
    assert waiting(office) == "migration 1 can take a step"
    assert idle_until_nothing_waits(office) >= 1
    assert (grown.state, sorted(office.shares().values())) == ("done", [5, 5, 6])
    office.migrator.scale(2, strategy, options)
    idle_until_nothing_waits(office)
    assert office.cluster.dismissed == {C}
    assert office.shares() == {A: 8, B: 8}


def test_no_epoch_is_asked_for_while_copies_are_on_their_way() -> None:
    office = at_rest([A, B, C, D])
    office.migrator.move(STEP, frozenset(map(SliceId, range(SLICES))), D, "handover", Options())
    assert waiting(office)
    office.epoch(checkpoint=False)
    assert waiting(office) is None, "the targets have to be supplied first, and that takes no epoch"
    office.copied()
    assert waiting(office)


def test_a_hold_asks_for_an_epoch_when_it_is_over() -> None:
    office = at_rest([A, B])
    migration = office.migrator.move(STEP, frozenset({SliceId(0)}), B, "lazy", Options(hold_s=3600.0))
    idle_until_nothing_waits(office)
    assert migration.state == "moving"
    office.clock.advance(3600.0)
    assert waiting(office)


def test_a_lost_worker_asks_for_an_epoch_once() -> None:
    office = at_rest([A, B, C])
    office.cluster.there.remove(B)
    assert waiting(office) == "worker b is lost"
    idle_until_nothing_waits(office)
    assert set(office.owners()) == {A, C}


@pytest.mark.parametrize("strategy", sorted(STOPPING))
def test_a_migration_that_stops_the_app_asks_for_one(strategy: str) -> None:
    office = at_rest([A, B], [C, D])
    office.migrator.scale(2, strategy, Options())
    assert waiting(office) == "migration 1 waits for the app to stop"
    office.migrator.cancel()
    assert waiting(office) is None


def test_a_cancelled_migration_lets_its_workers_go_without_rows() -> None:
    office = at_rest([A, B], [C])
    migration = office.migrator.scale(3, "progressive", Options(slices_an_epoch=1))
    until(lambda: migration.begun)
    for _ in range(4):
        office.epoch()
    assert migration.flipped
    office.migrator.cancel()
    idle_until_nothing_waits(office)
    assert migration.state == "cancelled"
    assert office.cluster.dismissed == {C}


def test_one_nudge_an_epoch_and_another_if_none_comes() -> None:
    clock = ManualClock()
    rhythm = NudgePace(clock)
    assert not rhythm.beats(None, 3)
    assert rhythm.beats("a step", 3)
    assert not rhythm.beats("a step", 3), "the epoch is on its way"
    assert rhythm.beats("a step", 4)
    clock.advance(AGAIN_S)
    assert rhythm.beats("a step", 4)


def test_nothing_is_asked_while_an_epoch_runs() -> None:
    did = []
    runner = SimpleNamespace(
        in_flight=True,
        history=SimpleNamespace(head=None),
        rest=lambda: did.append("rest"),
        waiting=lambda: "a step",
        expiring=lambda: None,
    )
    idle_epochs = IdleEpochs(cast(EpochRunner, runner), lambda: did.append("nudge"))
    idle_epochs.look()
    assert did == []
    runner.in_flight = False
    idle_epochs.look()
    assert did == ["nudge", "rest"]


def test_what_time_has_made_due_gets_an_epoch_once_none_comes_by_itself() -> None:
    """While rows come there is an epoch soon anyway, and one without rows would only hold them up."""
    clock, did = ManualClock(), []
    history = SimpleNamespace(head=SimpleNamespace(epoch=7))
    runner = SimpleNamespace(
        in_flight=False, history=history, rest=lambda: None, waiting=lambda: None, expiring=lambda: "a window"
    )
    idle_epochs = IdleEpochs(cast(EpochRunner, runner), lambda: did.append(history.head.epoch), clock=clock)
    for epoch in (8, 9):
        history.head = SimpleNamespace(epoch=epoch)
        idle_epochs.look()
        clock.advance(QUIET_S / 2)
        idle_epochs.look()
    assert did == []
    clock.advance(QUIET_S / 2)
    idle_epochs.look()
    assert did == [9]
    runner.expiring = lambda: None
    clock.advance(AGAIN_S)
    idle_epochs.look()
    assert did == [9]
