"""Moves: the difference of two plans, and the steps in which it is made."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.ids import SliceId, WorkerId
from springtide.plan.moves import BadMoves, Move, moves, steps

A, B, C = WorkerId("a"), WorkerId("b"), WorkerId("c")

few = settings(max_examples=60)
owners = st.lists(st.tuples(st.sampled_from([A, B, C]), st.sampled_from([A, B, C])), max_size=24)


def test_only_slices_that_change_their_owner_move() -> None:
    assert moves("counts", (A, A, B, B), (A, C, B, A)) == (
        Move("counts", SliceId(1), A, C),
        Move("counts", SliceId(3), B, A),
    )


def test_plans_of_different_sizes_cannot_be_compared() -> None:
    with pytest.raises(BadMoves, match="step 'counts': 2 slices before and 3 after"):
        moves("counts", (A, A), (A, A, B))


def test_without_heat_the_targets_take_turns() -> None:
    going = moves("counts", (A,) * 6, (B, B, B, C, C, A))
    assert [[(m.slice, m.target) for m in step] for step in steps(going, 2)] == [
        [(0, B), (3, C)],
        [(1, B), (4, C)],
        [(2, B)],
    ]


def test_with_heat_the_hottest_go_first() -> None:
    going = moves("counts", (A,) * 4, (B,) * 4)
    heat = {("counts", SliceId(1)): 5.0, ("counts", SliceId(3)): 9.0, ("other", SliceId(2)): 99.0}
    assert [[m.slice for m in step] for step in steps(going, 3, heat)] == [[3, 1, 0], [2]]


@pytest.mark.parametrize("k", [0, -1])
def test_a_step_needs_a_move(k: int) -> None:
    with pytest.raises(BadMoves, match="at least 1"):
        steps((), k)


def test_nothing_to_move_is_no_step() -> None:
    assert steps(moves("counts", (A, B), (A, B)), 3) == ()


@few
@given(owners)
def test_the_moves_turn_one_plan_into_the_other(pairs: list[tuple[WorkerId, WorkerId]]) -> None:
    before, after = [p[0] for p in pairs], [p[1] for p in pairs]
    made = list(before)
    for move in moves("x", before, after):
        assert made[move.slice] == move.source != move.target
        made[move.slice] = move.target
    assert made == after


@few
@given(owners, st.integers(1, 9), st.none() | st.dictionaries(st.integers(0, 23).map(SliceId), st.floats(0, 1e6)))
def test_steps_have_each_move_once_and_k_moves_but_the_last(
    pairs: list[tuple[WorkerId, WorkerId]], k: int, heat: dict[SliceId, float] | None
) -> None:
    going = moves("x", [p[0] for p in pairs], [p[1] for p in pairs])
    by_step = None if heat is None else {("x", slice_id): rows for slice_id, rows in heat.items()}
    made = steps(going, k, by_step)
    flat = [move for step in made for move in step]
    assert sorted(flat, key=lambda m: m.slice) == list(going)
    assert all(len(step) == k for step in made[:-1])
    assert all(1 <= len(step) <= k for step in made)
    if heat is not None:
        warmth = [heat.get(move.slice, 0.0) for move in flat]
        assert warmth == sorted(warmth, reverse=True)
    assert made == steps(going, k, by_step), "the same each time"
