"""The elastic pool between epochs and after failures, without Spark."""

import pytest
from office_kit import SLICES, STEP, A, B, C, Office

from springtide.blocks.manifest import OperatorState
from springtide.engine.pool.elastic import ATTEMPTS
from springtide.engine.wire.retry_signals import Replan
from springtide.ids import SliceId
from springtide.migration.step import Options


def test_one_plan_holds_from_a_boundary_to_the_next() -> None:
    office = Office([A, B], spare=[C])
    office.epoch()
    before = office.pool.boundary(office.roster.head)
    office.migrator.move(STEP, frozenset(map(SliceId, before.operators[STEP].owned(A))), B, "handover", Options())
    assert office.pool.plan is before, "a move changes nothing within an epoch"
    office.commit(before, office.roster.head)
    office.copied()
    office.epochs(lambda: not office.migrator.busy)
    assert office.pool.plan.version > before.version
    assert set(office.owners()) == {B}


def test_state_is_read_from_the_durable_store_by_the_first_epoch_alone() -> None:
    office = Office([A, B])
    office.pool.boundary(None)
    assert office.pool.durable, "nobody has anything yet"
    office.commit(office.pool.plan, None)
    office.pool.boundary(office.roster.head)
    assert not office.pool.durable


def test_a_worker_that_lacks_slices_reads_them_from_the_durable_store_in_the_next_attempt() -> None:
    office = Office([A, B])
    office.epoch()
    plan = office.pool.boundary(office.roster.head)
    missing = Replan(STEP, {}, {A: frozenset(map(SliceId, plan.operators[STEP].owned(A)))})
    assert office.pool.replan(missing, office.roster.head) is plan
    assert office.pool.durable


def test_a_lost_worker_is_replaced_by_those_who_stand_by_in_the_same_epoch() -> None:
    office = Office([A, B, C])
    office.epoch()
    office.epoch()
    plan = office.pool.boundary(office.roster.head)
    office.cluster.there.remove(B)
    again = office.pool.replan(RuntimeError("its tasks failed"), office.roster.head)
    assert again.version > plan.version
    assert set(office.owners()) == {A, C}
    owed = office.pool.state.takeovers(STEP, OperatorState())
    taken = frozenset[int]().union(*(each.slices for each in owed))
    assert taken == plan.operators[STEP].owned(B), "their new owners begin with what they kept"


def test_an_epoch_is_not_tried_for_ever() -> None:
    office = Office([A, B])
    office.epoch()
    office.pool.boundary(office.roster.head)
    error = Replan(STEP, {}, {A: frozenset({SliceId(0)})})
    for _ in range(ATTEMPTS - 1):
        office.pool.replan(error, office.roster.head)
    with pytest.raises(Replan):
        office.pool.replan(error, office.roster.head)
    office.pool.boundary(office.roster.head)
    office.pool.replan(error, office.roster.head)  # The next epoch has attempts of its own.


def test_an_error_that_is_not_a_lost_worker_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("springtide.engine.pool.elastic.LOSS_S", 0.0)
    office = Office([A, B])
    office.epoch()
    office.pool.boundary(office.roster.head)
    with pytest.raises(ZeroDivisionError):
        office.pool.replan(ZeroDivisionError("in a user's function"), office.roster.head)


def test_workers_that_nothing_is_on_are_let_go_at_a_boundary() -> None:
    office = Office([A, B, C])
    office.epoch()
    office.migrator.scale(2, "handover", Options())
    office.epochs(lambda: not office.migrator.busy)
    office.epochs(lambda: office.cluster.dismissed == {C})
    assert office.pool.departed() == (C,)
    assert len(office.owners()) == SLICES


def test_after_going_back_nobody_has_anything() -> None:
    office = Office([A, B])
    office.epoch()
    office.pool.state.went_back(None)
    office.pool.boundary(None)
    assert office.pool.durable
    assert office.pool.state.takeovers(STEP, OperatorState()) == ()
