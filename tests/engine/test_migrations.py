"""Migrations and recovery between epochs, without Spark: who owns what after each boundary, and what is refused."""

from collections.abc import Callable

import pytest
from office_kit import LIVE, SLICES, STEP, A, B, C, D, Office, until

from springtide.engine.migrate.migrator import Migrator
from springtide.ids import SliceId
from springtide.migration.errors import Busy, Refused, Unknown
from springtide.migration.step import Options


@pytest.mark.parametrize("strategy", LIVE)
def test_growing_levels_the_shares_and_shrinking_lets_the_worker_go(strategy: str) -> None:
    office = Office([A, B], [C])
    office.epoch()
    options = Options(2 if strategy == "progressive" else None, hold_s=0.0)
    grown = office.migrator.scale(3, strategy, options)
    until(lambda: grown.begun)
    office.epochs(lambda: not grown.under_way)
    assert grown.state == "done"
    assert sorted(office.shares().values()) == [5, 5, 6]
    office.epoch()
    shrunk = office.migrator.scale(2, strategy, options)
    office.epochs(lambda: bool(office.cluster.dismissed))
    assert shrunk.state == "done"
    assert office.cluster.dismissed == {C}
    assert office.cluster.asked[-1] == 2, "else the cluster would send another in its place"
    assert office.shares() == {A: 8, B: 8}
    assert not office.roster.plan.operators[STEP].stalled


def test_the_hottest_slices_move_first() -> None:
    office = Office([A, B])
    office.epoch()
    rows = {0: 5.0, 2: 900.0, 5: 70.0, 9: 1000.0}
    office.migrator.heat = lambda: {(STEP, SliceId(number)): count for number, count in rows.items()}
    mine = frozenset(map(SliceId, range(SLICES // 2)))
    migration = office.migrator.move(STEP, mine, B, "progressive", Options(2, hottest_first=True))
    office.epochs(lambda: not migration.under_way)
    assert [m.slice for m in migration.flipped][:3] == [2, 5, 0]


def test_progressive_moves_a_few_slices_an_epoch_and_handover_all_at_once() -> None:
    for strategy, most in (("progressive", 2), ("handover", SLICES)):
        office = Office([A, B])
        office.epoch()
        moving = frozenset(map(SliceId, range(6)))
        options = Options(2 if strategy == "progressive" else None)
        migration = office.migrator.move(STEP, moving, B, strategy, options)
        seen = []
        while migration.under_way:
            before = office.owners()
            office.epoch()
            seen.append(sum(a != b for a, b in zip(before, office.owners(), strict=True)))
        assert max(seen) == min(most, 6)
        assert sum(seen) == 6


def test_partial_pause_stalls_the_moving_slices_until_they_flip() -> None:
    office = Office([A, B])
    office.epoch()
    moving = frozenset(map(SliceId, range(4)))
    migration = office.migrator.move(STEP, moving, B, "partial_pause", Options())
    office.epoch(checkpoint=False)
    assert office.roster.plan.operators[STEP].stalled == moving or not migration.under_way
    office.epochs(lambda: not migration.under_way)
    assert office.roster.plan.operators[STEP].stalled == frozenset()
    assert all(office.owners()[s] == B for s in moving)


def test_a_cancelled_migration_gives_back_what_has_moved() -> None:
    office = Office([A, B], [C])
    office.epoch()
    before = office.owners()
    migration = office.migrator.scale(3, "progressive", Options(slices_an_epoch=1))
    until(lambda: migration.begun)
    office.epochs(lambda: len(migration.flipped) >= 2)
    assert office.owners() != before
    office.migrator.cancel()
    office.epochs(lambda: not migration.under_way)
    assert migration.state == "cancelled"
    assert office.owners() == before
    office.epochs(lambda: office.cluster.dismissed == {C})
    assert office.roster.wanted == 2


def test_targets_that_are_not_ready_in_time_are_given_up_and_the_owners_stay() -> None:
    office = Office([A, B], [C], ready_s=-1.0)
    office.epoch()
    before = office.owners()
    migration = office.migrator.scale(3, "handover", Options())
    until(lambda: migration.begun)
    office.epoch(checkpoint=False)
    assert (migration.state, office.owners()) == ("failed", before)
    assert "not ready" in migration.message


def test_more_workers_than_the_cluster_can_give() -> None:
    office = Office([A, B])
    office.epoch()
    plan = office.roster.plan
    migration = office.migrator.scale(5, "progressive", Options())
    until(lambda: not migration.under_way)
    assert (migration.state, office.roster.plan, office.roster.wanted) == ("failed", plan, 2)
    assert "asked the cluster for 5 workers, got 2" in migration.message
    assert office.cluster.asked == [5, 2]


def test_more_workers_than_there_is_room_for_are_refused_unless_forced() -> None:
    office = Office([A, B], [C, D])
    office.epoch()
    office.cluster.room = 3
    for strategy in ("progressive", "drain"):
        with pytest.raises(Refused, match="4 workers asked for; this office carries at most 3"):
            office.migrator.scale(4, strategy, Options())
    assert (office.migrator.current, office.roster.wanted, office.cluster.asked) == (None, 2, [])
    office.cluster.room = 1
    office.migrator.scale(1, "handover", Options())
    office.epochs(lambda: not office.migrator.busy)
    office.epochs(lambda: office.cluster.dismissed == {B})
    forced = office.migrator.scale(3, "progressive", Options(force=True))
    until(lambda: forced.begun)


def test_a_growth_that_is_called_off_gives_back_who_has_come_and_who_is_still_to_come() -> None:
    office = Office([A, B], [C])
    office.epoch()
    office.cluster.slow = True
    migration = office.migrator.scale(6, "progressive", Options())
    until(lambda: C in office.cluster.there)
    office.migrator.cancel()
    assert (migration.state, office.roster.wanted, office.cluster.asked) == ("cancelled", 2, [6, 2])
    assert (office.cluster.there, office.cluster.dismissed) == ([A, B], {C})
    office.cluster.late = [D]
    office.cluster.sweep()
    assert office.cluster.there == [A, B]
    again = office.migrator.scale(1, "handover", Options())
    office.epochs(lambda: not again.under_way)
    assert again.state == "done", "the growth that was called off does not interfere"


def test_a_growth_that_fails_wants_as_many_as_before_though_one_is_lost_meanwhile() -> None:
    office = Office([A, B])
    office.epoch()
    office.cluster.slow = True
    migration = office.migrator.scale(5, "progressive", Options())
    office.cluster.there.remove(A)
    office.epoch()
    until(lambda: not migration.under_way)
    assert (migration.state, office.roster.wanted, office.cluster.asked[-1]) == ("failed", 2, 2)


@pytest.mark.parametrize(
    ("request_", "kind", "says"),
    [
        (lambda m: m.scale(0, "handover", Options()), Refused, "expected 1 to 16 workers"),
        (lambda m: m.scale(17, "handover", Options()), Refused, "expected 1 to 16 workers"),
        (lambda m: m.scale(1, "teleport", Options()), Refused, "expected a strategy of"),
        (lambda m: m.move("sums", frozenset({0}), B, "handover", Options()), Unknown, "expected a keyed step"),
        (lambda m: m.move(STEP, frozenset({0}), D, "handover", Options()), Unknown, "expected a worker of"),
        (lambda m: m.move(STEP, frozenset({0, 16}), B, "handover", Options()), Unknown, r"slices from 0 to 15.*\[16\]"),
        (lambda m: m.move(STEP, frozenset(), B, "handover", Options()), Unknown, "slices from 0 to 15"),
        (lambda m: m.cancel(), Refused, "no migration under way"),
    ],
)
def test_a_request_that_can_not_be_met_changes_nothing(
    request_: Callable[[Migrator], object], kind: type[Exception], says: str
) -> None:
    office = Office([A, B])
    office.epoch()
    plan, wanted = office.roster.plan, office.roster.wanted
    with pytest.raises(kind, match=says):
        request_(office.migrator)
    assert (office.roster.plan, office.roster.wanted) == (plan, wanted)
    assert not office.migrator.busy


def test_a_second_migration_is_refused_while_one_is_under_way() -> None:
    office = Office([A, B])
    office.epoch()
    first = office.migrator.move(STEP, frozenset({SliceId(0)}), B, "handover", Options())
    with pytest.raises(Busy, match=r"migration 1 .* is under way"):
        office.migrator.scale(1, "handover", Options())
    office.epochs(lambda: not first.under_way)
    assert first.state == "done"


def test_slices_of_a_lost_worker_go_to_those_who_stood_by_for_them() -> None:
    office = Office([A, B, C, D])
    office.epoch()
    replicas, owners = office.roster.plan.operators[STEP].replicas, office.owners()
    office.cluster.there = [B, D]
    office.epoch()
    for number, owner in enumerate(owners):
        expected = owner if owner in (B, D) else replicas[number][0]
        assert office.owners()[number] == expected
    assert {w.id for w in office.roster.plan.workers} == {B, D}
    assert office.roster.wanted == 4, "replacements are waited for"


def test_a_loss_ends_a_migration_and_everybody_who_is_left_is_of_use() -> None:
    office = Office([A, B], [C])
    office.epoch()
    migration = office.migrator.scale(3, "progressive", Options(slices_an_epoch=1))
    until(lambda: migration.begun)
    office.epochs(lambda: len(migration.flipped) >= 1)
    office.cluster.there.remove(A)
    office.epoch()
    assert migration.state == "failed"
    assert "worker a was lost" in migration.message
    assert set(office.owners()) <= {B, C}
    assert set(office.roster.ring.workers) == {B, C}


def test_when_all_are_lost_a_new_one_takes_everything() -> None:
    office = Office([A, B], [])
    office.epoch()
    office.cluster.there = [C]
    office.epoch()
    assert set(office.owners()) == {C}
    assert [w.id for w in office.roster.plan.workers] == [C]
