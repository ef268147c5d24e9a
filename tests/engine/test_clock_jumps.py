"""Migrations while the wall clock jumps: what is waited for goes by another one."""

import time

import pytest
from office_kit import STEP, A, B, C, Office

from springtide.engine.pool.pending_work import waiting
from springtide.ids import SliceId
from springtide.migration.progress import Migration
from springtide.migration.step import Options

HOUR_S = 3600.0


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["forward", "back"])
def jump(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Jump":
    return Jump(request.param, monkeypatch)


class Jump:
    """Sets the wall clock an hour forward or back."""

    def __init__(self, by_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_s, self._monkeypatch = by_s, monkeypatch

    def __call__(self) -> None:
        wall = time.time
        self._monkeypatch.setattr(time, "time", lambda: wall() + self.by_s)


def moving(office: Office, strategy: str) -> Migration:
    """A migration of slices that the target knows nothing of yet."""
    office.epoch()
    share = office.roster.plan.operators[STEP]
    foreign = [SliceId(s) for s, owner in enumerate(share.owners) if C not in (owner, *share.replicas_of(SliceId(s)))]
    return office.migrator.move(STEP, frozenset(foreign), C, strategy, Options(hold_s=10.0))


def test_a_hold_lasts_as_long_as_it_should(jump: Jump) -> None:
    office = Office([A, B, C])
    migration = moving(office, "lazy")
    office.epochs(lambda: migration.state == "moving")
    jump()
    office.clock.advance(9.0)
    office.epoch()
    assert (migration.state, waiting(office.shared, office.migrator)) == ("moving", None)
    office.clock.advance(1.0)
    assert waiting(office.shared, office.migrator) is not None
    office.epoch()
    assert migration.state == "done"


def test_targets_have_as_long_as_they_should(jump: Jump) -> None:
    office = Office([A, B, C], ready_s=60.0)
    migration = moving(office, "handover")
    office.epoch(checkpoint=False)
    jump()
    office.clock.advance(59.0)
    office.epoch(checkpoint=False)
    assert migration.under_way
    office.clock.advance(2.0)
    assert waiting(office.shared, office.migrator) is not None
    office.epoch(checkpoint=False)
    assert (migration.state, migration.message) == ("failed", "the targets were not ready in 60 s")


def test_what_a_migration_took_and_copied(jump: Jump) -> None:
    office = Office([A, B, C])
    office.copied_bytes = 70
    migration = moving(office, "handover")
    jump()
    office.copied_bytes = 100
    office.epochs(lambda: not migration.under_way)
    told = migration.to_json()
    assert 0.0 <= told["seconds"] < HOUR_S / 2
    assert told["bytes"] == 30
