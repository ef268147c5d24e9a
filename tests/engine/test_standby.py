"""Standing by: nobody takes over from a state with a hole in it, and nothing that is needed is let go."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standby_kit import EVERY, SLICES, STEP, Model, Replicas

from springtide.ids import SliceId, WorkerId

A, B, C, D = map(WorkerId, "abcd")


def two(owners: Sequence[WorkerId] = (A,) * SLICES, replicas: Replicas = ((B,),) * SLICES) -> Model:
    """Worker a owns every slice, and worker b stands by."""
    return Model.of(owners, replicas)


def supplied(epochs: int = 1) -> Model:
    """The same, after a checkpoint of the last epoch."""
    model = two()
    for _ in range(epochs):
        model.epoch()
    model.begin()
    assert model.end()
    return model


def test_nobody_is_ready_before_a_checkpoint_however_many_backups_there_are() -> None:
    model = two()
    for _ in range(3):
        model.epoch()
    assert model.ready(B) == frozenset()
    model.flip(EVERY, B)
    assert model.takeovers() == ()


def test_a_takeover_has_the_epochs_since_the_base_in_order() -> None:
    model = supplied(2)
    model.epoch()
    model.epoch(frozenset())
    model.epoch()
    model.flip([SliceId(3)], B)
    (takeover,) = model.takeovers()
    assert (takeover.worker, takeover.slices) == (B, frozenset({SliceId(3)}))
    assert [moment.watermark_us for moment, _ in takeover.missed] == [2, 3, 4]
    assert [block is None for _, block in takeover.missed] == [False, True, False], "no rows, no block"
    model.epoch()


@pytest.mark.parametrize("lacking", [(True, False), (False, True), (True, True)])
def test_a_stale_replica_is_never_ready(lacking: tuple[bool, bool]) -> None:
    """Its base is two epochs old, and it did not stand by in the first of them, in the last, or in both."""
    model = supplied()
    model.begin()
    for missed in lacking:
        model.change(model.share.owners, [() if missed else (B,)] * SLICES)
        model.epoch()
    model.end()
    assert model.ready(B) == frozenset()
    model.flip(EVERY, B)
    assert model.takeovers() == ()


def test_who_stood_by_for_some_slices_only_is_ready_for_these_only() -> None:
    model = supplied()
    half = frozenset(s for s in EVERY if s % 2)
    model.begin()
    model.change(model.share.owners, [(B,) if s in half else () for s in range(SLICES)])
    model.epoch()
    model.change(model.share.owners, [(B,)] * SLICES)
    model.epoch()
    model.end()
    assert model.ready(B) == half
    model.begin()
    assert model.end()
    assert model.ready(B) == EVERY


def test_who_stops_to_stand_by_has_to_be_supplied_anew() -> None:
    model = supplied()
    model.change(model.share.owners, [()] * SLICES)
    model.epoch()
    model.change(model.share.owners, [(B,)] * SLICES)
    model.epoch()
    assert model.ready(B) == frozenset()


def test_a_checkpoint_that_is_given_up_changes_nobodys_base() -> None:
    model = supplied()
    model.epoch()
    model.begin()
    model.epoch()
    model.give_up()
    model.epoch()
    assert model.ready(B) == EVERY
    model.flip(EVERY, B)
    (takeover,) = model.takeovers()
    assert [moment.watermark_us for moment, _ in takeover.missed] == [1, 2, 3]


def test_a_former_owner_stands_by_with_what_it_has() -> None:
    """So the way back is open at once, without a checkpoint."""
    model = supplied(2)
    model.epoch()
    model.flip(EVERY, B)
    model.epoch()
    assert model.ready(A) == EVERY
    model.epoch()
    model.flip(EVERY, A)
    (takeover,) = model.takeovers()
    assert [moment.watermark_us for moment, _ in takeover.missed] == [3, 4]
    model.epoch()
    assert model.durable_reads == 0


def test_all_that_a_lost_worker_owned_is_taken_over_without_a_durable_read() -> None:
    model = supplied()
    model.epoch()
    model.lose(A)
    model.epoch()
    assert model.share.owners == (B,) * SLICES
    assert model.durable_reads == 0


def test_a_lost_worker_is_ready_for_nothing_and_holds_nothing() -> None:
    model = supplied()
    assert model.ready(B) == EVERY
    model.lose(B)
    assert model.ready(B) == frozenset()
    assert B not in model.standbys.parts()


def test_an_owner_keeps_the_parts_that_its_state_still_needs() -> None:
    """It took over from parts of runs that somebody else wrote, and has not rewritten them yet."""
    model = supplied(2)
    model.flip(EVERY, B)
    model.epoch(fold=lambda: 0)
    model.change(model.share.owners, [()] * SLICES)
    for _ in range(4):
        model.epoch(fold=lambda: 0)
    assert model.standbys.parts()[B], "nobody's base needs them, and its own chain begins with them"
    assert model.durable_reads == 0
    model.epoch(fold=lambda: 99)
    model.epoch()
    assert not model.standbys.parts()[B]


def test_only_what_is_lacking_is_copied() -> None:
    model = supplied(2)
    assert model.head is not None
    assert model.standbys.copies(model.head, model.plan) == []
    model.epoch(fold=lambda: 0)
    (copy,) = model.standbys.copies(model.head, model.plan)
    assert (copy.run.epoch, copy.slices, copy.source, copy.target) == (2, EVERY, A, B)


@settings(max_examples=30, deadline=None)
@given(every=st.integers(1, 6), takes=st.integers(0, 3), epochs=st.integers(10, 24), fold=st.integers(0, 2))
def test_with_a_checkpoint_each_n_epochs_no_more_than_n_and_two_epochs_are_kept(
    every: int, takes: int, epochs: int, fold: int
) -> None:
    """One worker stands by, and each of its backups has a size of 1; `takes` epochs go by in a checkpoint."""
    model = two()
    takes = min(takes, every - 1)
    for number in range(epochs):
        model.epoch(fold=lambda: fold)
        if number % every == 0:
            model.begin()
        if number % every == takes:
            assert model.end()
        if number >= 2 * every:
            assert model.standbys.backup_bytes() <= every + takes + 2
            assert takes or model.standbys.backup_bytes() <= every + 2


def test_without_a_base_the_newest_backups_alone_are_kept() -> None:
    model = two()
    gone = [name for _ in range(6) for name in model.epoch()]
    assert model.standbys.backup_bytes() == 1
    assert len(gone) == 5


def test_a_backup_that_is_covered_is_let_go_once() -> None:
    model = supplied()
    gone: list[str] = []
    for _ in range(5):
        model.epoch()
        model.begin()
        model.end()
        gone += model.epoch()
    backups = [name for name in gone if ".backup." in name]
    assert len(backups) == len(set(backups)) > 5


def test_what_is_being_copied_is_pinned_until_it_ends() -> None:
    model = two()
    model.epoch()
    checkpoint = model.begin()
    runs = checkpoint.manifest.blocks()
    for _ in range(4):
        model.epoch(fold=lambda: 9)
    assert runs <= model.standbys.pinned()
    model.give_up()
    model.epoch()
    assert not runs & model.standbys.pinned()


def test_a_worker_that_lacks_slices_is_supplied_anew() -> None:
    model = supplied()
    some = frozenset({SliceId(1), SliceId(2)})
    model.standbys.lacking(STEP, B, some)
    assert model.ready(B) == EVERY - some
    assert model.head is not None
    lacking = [c.slices for c in model.standbys.copies(model.head, model.plan)]
    assert frozenset().union(*lacking) >= some
    model.begin()
    model.end()
    assert model.ready(B) == EVERY


def test_what_a_worker_lacks_of_some_slices_takes_nothing_from_the_others() -> None:
    model = supplied()
    model.standbys.lacking(STEP, B, frozenset({SliceId(1)}))
    model.check_ready()


def test_what_a_worker_lacks_of_one_step_takes_nothing_from_another() -> None:
    model = supplied()
    before = model.standbys.parts()[B]
    model.standbys.lacking("another step", B, EVERY)
    assert model.standbys.parts()[B] == before


def test_a_worker_that_lacks_what_it_wrote_itself_is_supplied_anew() -> None:
    """A former owner stands by with runs of its own, and one of them is damaged."""
    model = supplied()
    model.flip(EVERY, B)
    model.epoch(fold=lambda: 0)
    model.standbys.lacking(STEP, A, EVERY)
    assert model.head is not None
    copies = model.standbys.copies(model.head, model.plan)
    assert {(c.run.worker, c.target) for c in copies} >= {(A, A), (B, A)}
    assert all(c.run.slices >= c.slices for c in copies)
