"""Level rings, and many workers at once: as few slices move as can be, and quickly."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_kit import few, lengths, rings, workers

from springtide.ids import WorkerId
from springtide.plan.moves import moves
from springtide.plan.ring import BadRing, Ring
from springtide.plan.ring_level import few_moves, fewest_moves
from springtide.plan.worker import Worker


@few
@given(rings())
def test_a_level_ring_has_nearly_equal_arcs_in_the_same_order(made: Ring) -> None:
    level = made.levelled()
    n = len(made.workers)
    assert set(lengths(level)) <= {made.slices // n, -(-made.slices // n)}
    turn = level.workers.index(made.workers[0])
    assert level.workers[turn:] + level.workers[:turn] == made.workers
    assert level.zones == made.zones
    assert level.levelled() == level, "a level ring stays as it is"


def fewest_moves_to_level(made: Ring) -> int:
    """All level rings tried, one after the other."""
    n = len(made.workers)
    share, longer = divmod(made.slices, n)
    best = made.slices
    for chosen in combinations(range(n), longer):
        starts = [sum(share + (i in chosen) for i in range(upto)) for upto in range(n)]
        for shift in range(made.slices):
            tokens = tuple((w, (s + shift) % made.slices) for w, s in zip(made.workers, starts, strict=True))
            best = min(best, len(moves("x", made.owners(), Ring(made.slices, tokens, {}).owners())))
    return best


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 11), st.data())
def test_levelling_moves_the_fewest_slices(slices: int, data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.integers(0, slices - 1), min_size=1, max_size=5, unique=True))
    made = Ring(slices, tuple((WorkerId(f"w{t}"), t) for t in tokens), {})
    assert len(moves("x", made.owners(), made.levelled().owners())) == fewest_moves_to_level(made)


@few
@given(rings(least=2), st.lists(st.sampled_from("xyz"), max_size=9))
def test_many_join_as_they_would_one_by_one(made: Ring, zones: list[str]) -> None:
    new = [Worker(WorkerId(f"n{i}"), zone=zone) for i, zone in enumerate(zones)]
    one_by_one = made
    try:
        for worker in new:
            longest = max(lengths(one_by_one))
            rank = {w: _meets_its_own(one_by_one, w, worker.zone) for w in one_by_one.workers}
            after = min((w for w in one_by_one.workers if len(one_by_one.arc(w)) == longest), key=lambda w: rank[w])
            one_by_one = one_by_one.joined(worker, after)
    except BadRing as full:
        with pytest.raises(BadRing, match=str(full)):
            made.joined_by(new)
        return
    assert made.joined_by(new) == one_by_one


def _meets_its_own(made: Ring, worker: WorkerId, zone: str) -> int:
    here, there = made.zones[worker], made.zones[made.neighbour(worker)]
    return (zone == here) + (zone == there) - (here == there)


@few
@given(rings(least=2), st.data())
def test_many_leave_as_they_would_one_by_one(made: Ring, data: st.DataObject) -> None:
    leaving = data.draw(st.lists(st.sampled_from(made.workers), unique=True))
    if set(leaving) == set(made.workers):
        with pytest.raises(BadRing, match=r"all \d+ workers cannot leave"):
            made.without(leaving)
        return
    one_by_one = made
    for worker in leaving:
        one_by_one = one_by_one.left(worker, heir=one_by_one.neighbour(worker))
    assert made.without(leaving) == one_by_one


@few
@given(rings())
def test_a_level_ring_found_quickly_is_level_and_no_turn_of_it_keeps_more(made: Ring) -> None:
    tokens, n = [token for _, token in made.tokens], len(made.tokens)
    quick = few_moves(tokens, made.slices)
    assert sorted((b - a) % made.slices or made.slices for a, b in zip(quick, [*quick[1:], quick[0]], strict=True)) == (
        sorted((i + 1) * made.slices // n - i * made.slices // n for i in range(n))
    )

    def kept(level: list[int]) -> int:
        turned = Ring(made.slices, tuple(zip(made.workers, level, strict=True)), made.zones)
        return sum(a == b for a, b in zip(made.owners(), turned.owners(), strict=True))

    assert kept(quick) == max(kept([(t + turn) % made.slices for t in quick]) for turn in range(made.slices))
    assert kept(quick) <= kept(fewest_moves(tokens, made.slices))


def test_thousands_of_workers_join_and_leave_a_ring_of_a_million_slices() -> None:
    made = Ring.even(1_000_000, workers(*(f"z{i % 3}" for i in range(9_000))))
    grown = made.joined_by([Worker(WorkerId(f"n{i}"), zone=f"z{i % 3}") for i in range(1_000)]).levelled()
    assert set(lengths(grown)) == {100}
    shrunk = grown.without(grown.workers[::10])
    assert len(shrunk.workers) == 9_000
    for worker in grown.workers[:50]:
        assert grown.zones[grown.backups(worker, 1)[0]] != grown.zones[worker]
    assert len(grown.promoted(grown.workers[:20], 1)) == 1_000_000
