"""The ring: each slice has one owner and its replicas; a change moves what it must and no more."""

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ring_kit import few, lengths, ring, rings, same_zone_neighbours, workers

from springtide.ids import SliceId, WorkerId
from springtide.plan.moves import moves
from springtide.plan.ring import BadRing, Load, Ring, Thresholds
from springtide.plan.worker import Worker

A, B, C, D = (WorkerId(name) for name in "abcd")
NEW = WorkerId("new")
LOW = Thresholds(queue=100, cpu=0.5)
IDLE, BUSY = Load(queue=0, cpu=0.1), Load(queue=5_000, cpu=0.9)


def test_a_slice_belongs_to_the_nearest_token_at_it_or_counter_clockwise() -> None:
    made = ring(8, b=5, a=2)
    assert made.tokens == ((A, 2), (B, 5))
    assert made.owners() == (B, B, A, A, A, B, B, B)
    assert [made.owner(s) for s in range(8)] == list(made.owners())
    assert made.arc(B) == (5, 6, 7, 0, 1)


def test_neighbours_go_around() -> None:
    made = ring(9, a=0, b=3, c=6)
    assert [made.neighbour(w) for w in (A, B, C)] == [B, C, A]
    assert [made.previous(w) for w in (A, B, C)] == [C, A, B]
    assert ring(9, a=4).neighbour(A) == ring(9, a=4).previous(A) == A


@pytest.mark.parametrize(
    ("slices", "tokens", "zones", "says"),
    [
        (4, (), {}, "at least 1 worker"),
        (0, ((A, 0),), {}, "'a' has token 0"),
        (4, ((A, 4),), {}, "'a' has token 4; the ring has slices 0 to 3"),
        (4, ((A, -1),), {}, "'a' has token -1"),
        (4, ((A, 1), (B, 1)), {}, "'a' and 'b' both have token 1"),
        (4, ((A, 1), (A, 2)), {}, "'a' is on the ring twice"),
        (4, ((A, 1),), {B: "x"}, r"workers \['b'\], which are not on the ring"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(
    slices: int, tokens: tuple[tuple[WorkerId, int], ...], zones: dict[WorkerId, str], says: str
) -> None:
    with pytest.raises(BadRing, match=says) as refused:
        Ring(slices, tokens, zones)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_what_is_not_on_the_ring_is_refused() -> None:
    made = ring(4, a=0)
    for ask in (made.arc, made.neighbour, made.previous, made.left, lambda w: made.backups(w, 1)):
        with pytest.raises(BadRing, match=r"'d' is not on the ring of \['a'\]"):
            ask(D)
    for slice in (-1, 4):
        with pytest.raises(BadRing, match=f"slice {slice} is not on the ring"):
            made.owner(slice)
    with pytest.raises(BadRing, match="-1 replicas"):
        made.replicas(0, -1)


def test_rings_are_values() -> None:
    assert ring(8, a=1, b=5) == ring(8, b=5, a=1)
    assert hash(ring(8, a=1, b=5)) == hash(ring(8, b=5, a=1))
    assert ring(8, a=1) != Ring(8, ((A, 1),), {A: "east"})


@few
@given(rings(), st.integers(0, 9))
def test_every_slice_has_one_owner_and_its_replicas(made: Ring, r: int) -> None:
    assert sorted(s for worker in made.workers for s in made.arc(worker)) == list(range(made.slices))
    for slice, owner in enumerate(made.owners()):
        assert made.owner(slice) == owner
        assert slice in made.arc(owner)
        replicas = made.replicas(slice, r)
        assert owner not in replicas
        assert len(set(replicas)) == len(replicas) == min(r, len(made.workers) - 1)
        elsewhere = set(made.zones.values()) - {made.zones[owner]}
        zones = [made.zones[w] for w in replicas]
        nearest_zones = zones[: len(elsewhere)]
        assert len(set(nearest_zones)) == len(nearest_zones), "one zone each while there are more"
        away = sum(zone != made.zones[owner] for zone in made.zones.values())
        assert sum(zone != made.zones[owner] for zone in zones) == min(r, away)
        assert replicas == made.replicas(slice, r + 1)[:r], "more replicas add to the ones there are"


def test_replicas_prefer_other_zones_nearest_clockwise_first() -> None:
    tokens = tuple((WorkerId(f"w{i}"), i) for i in range(6))
    made = Ring(6, tokens, dict(zip((w for w, _ in tokens), "xxyyzx", strict=True)))
    assert made.replicas(0, 5) == ("w2", "w4", "w3", "w1", "w5")
    assert made.replicas(4, 2) == ("w5", "w2")
    assert ring(4, a=0, b=1, c=2, d=3).replicas(2, 2) == (D, A)


@few
@given(st.lists(st.sampled_from("xyzu"), min_size=1, max_size=16), st.integers(0, 50))
def test_an_even_ring_is_level_and_alternates_its_zones(zones: list[str], spare: int) -> None:
    slices = len(zones) + spare
    made = Ring.even(slices, workers(*zones))
    assert set(lengths(made)) <= {slices // len(zones), -(-slices // len(zones))}
    assert made.zones == {w.id: w.zone for w in workers(*zones)}
    crowd = max(zones.count(zone) for zone in zones)
    assert same_zone_neighbours(made) == max(0, 2 * crowd - len(zones)), "no fewer are possible"
    assert made == Ring.even(slices, workers(*zones)), "the same each time"


def test_three_equal_zones_follow_each_other() -> None:
    made = Ring.even(12, workers("x", "x", "y", "y", "z", "z"))
    assert [made.zones[w] for w in made.workers] == list("xyzxyz")


def test_an_even_ring_needs_a_worker_and_a_slice_for_each() -> None:
    with pytest.raises(BadRing, match="3 workers cannot share 2 slices"):
        Ring.even(2, workers("", "", ""))
    with pytest.raises(BadRing, match="at least 1 worker"):
        Ring.even(2, [])


def test_a_new_worker_stands_half_way() -> None:
    made = ring(16, a=0, b=12).joined(Worker(NEW))
    assert made == ring(16, a=0, new=6, b=12)
    assert ring(16, a=0, b=12).joined(Worker(NEW), after=B) == ring(16, a=0, b=12, new=14)


def test_a_new_worker_joins_where_zones_alternate() -> None:
    made = Ring(12, ((A, 0), (B, 4), (C, 8)), {A: "x", B: "y", C: "y"}).joined(Worker(NEW, zone="x"))
    assert made.workers == (A, B, NEW, C)


@few
@given(rings(), st.sampled_from("xyz"), st.data())
def test_a_join_moves_half_an_arc_to_the_new_worker(made: Ring, zone: str, data: st.DataObject) -> None:
    after = data.draw(st.none() | st.sampled_from(made.workers))
    split = max(lengths(made)) if after is None else len(made.arc(after))
    if split < 2:
        with pytest.raises(BadRing, match="is 1 slice"):
            made.joined(Worker(NEW, zone=zone), after)
        return
    grown = made.joined(Worker(NEW, zone=zone), after)
    moved = moves("x", made.owners(), grown.owners())
    assert len(moved) == split // 2 <= -(-max(lengths(made)) // 2)
    assert {move.target for move in moved} == {NEW}
    assert len({move.source for move in moved}) == 1
    assert grown.zones == {**made.zones, NEW: zone}
    assert grown.left(NEW) == made, "leaving undoes joining"
    assert grown == made.joined(Worker(NEW, zone=zone), after), "the same each time"


def test_a_worker_joins_once() -> None:
    with pytest.raises(BadRing, match="'a' is on the ring already"):
        ring(4, a=0).joined(Worker(A))


@few
@given(rings(least=2), st.data())
def test_a_leave_moves_the_slices_of_the_leaver_to_a_neighbour(made: Ring, data: st.DataObject) -> None:
    leaver = data.draw(st.sampled_from(made.workers))
    for heir in (None, made.previous(leaver), made.neighbour(leaver)):
        shrunk = made.left(leaver, heir)
        moved = moves("x", made.owners(), shrunk.owners())
        assert {move.slice for move in moved} == set(made.arc(leaver))
        assert {move.target for move in moved} == {heir or made.previous(leaver)}
        assert leaver not in shrunk.zones
        assert set(shrunk.workers) == set(made.workers) - {leaver}


def test_only_a_neighbour_inherits_and_the_last_worker_stays() -> None:
    with pytest.raises(BadRing, match="'c' cannot take over from 'a'"):
        ring(8, a=0, b=2, c=4, d=6).left(A, heir=C)
    with pytest.raises(BadRing, match="'a' cannot leave: it is the last"):
        ring(8, a=0).left(A)


@few
@given(rings(), st.integers(0, 4), st.data())
def test_lost_slices_are_promoted_and_no_others_move(made: Ring, r: int, data: st.DataObject) -> None:
    lost = frozenset(data.draw(st.lists(st.sampled_from(made.workers), max_size=len(made.workers) - 1, unique=True)))
    after = made.promoted(lost, r)
    assert len(after) == made.slices
    for slice, (before, now) in enumerate(zip(made.owners(), after, strict=True)):
        assert now not in lost
        holders = [w for w in made.replicas(slice, r) if w not in lost]
        if before not in lost:
            assert now == before
        elif holders:
            assert now == holders[0]
    assert after == made.promoted(lost, r), "the same each time"


@few
@given(rings(zones="x", least=2), st.data())
def test_neighbours_that_die_together_leave_a_replica_of_each_slice(made: Ring, data: st.DataObject) -> None:
    n = len(made.workers)
    r = data.draw(st.integers(1, n - 1))
    first = data.draw(st.integers(0, n - 1))
    lost = frozenset(made.workers[(first + i) % n] for i in range(r))
    after = made.promoted(lost, r)
    for worker in lost:
        for slice in made.arc(worker):
            assert after[slice] in made.replicas(slice, r)


@few
@given(rings(zones="x", least=2), st.data())
def test_one_lost_worker_of_one_zone_is_one_that_left_to_its_clockwise_neighbour(
    made: Ring, data: st.DataObject
) -> None:
    lost = data.draw(st.sampled_from(made.workers))
    assert made.promoted({lost}, 1) == made.left(lost, heir=made.neighbour(lost)).owners()


@few
@given(rings(zones="xyz", least=2))
def test_a_whole_zone_may_die_with_one_replica(made: Ring) -> None:
    for zone in set(made.zones.values()):
        lost = frozenset(worker for worker in made.workers if made.zones[worker] == zone)
        if len(lost) < len(made.workers):
            after = made.promoted(lost, 1)
            for worker in lost:
                assert {after[slice] for slice in made.arc(worker)} == set(made.backups(worker, 1))


def test_without_a_replica_the_nearest_survivor_clockwise_is_promoted() -> None:
    made = ring(8, a=0, b=2, c=4, d=6)
    assert made.promoted({B, C}, 0) == (A, A, D, D, D, D, D, D)
    assert made.promoted({C, D}, 1) == (A, A, B, B, A, A, A, A)


def test_somebody_must_survive() -> None:
    with pytest.raises(BadRing, match="all 2 workers are lost"):
        ring(8, a=0, b=4).promoted({A, B}, 1)


@pytest.mark.parametrize(
    ("loads", "then"),
    [
        ({B: IDLE, C: IDLE}, ring(16, a=0, b=4, c=12)),
        ({B: BUSY, C: IDLE}, ring(16, a=4, b=8, c=12)),
        ({C: IDLE}, ring(16, a=4, b=8, c=12)),
        ({B: Load(queue=100, cpu=0.5)}, ring(16, a=0, b=4, c=12)),
        ({B: Load(queue=101, cpu=0.1)}, ring(16, a=0, b=8, c=12)),
        ({B: Load(queue=0, cpu=0.51)}, ring(16, a=0, b=8, c=12)),
        ({B: Load(queue=0, cpu=float("nan"))}, ring(16, a=0, b=8, c=12)),
        ({A: IDLE}, ring(16, a=0, b=8, c=12)),
    ],
)
def test_a_hot_worker_gives_half_its_arc_to_a_neighbour_with_room(loads: dict[WorkerId, Load], then: Ring) -> None:
    assert ring(16, a=0, b=8, c=12).balanced(A, loads, LOW) == then


def test_who_has_no_neighbour_or_one_slice_keeps_it() -> None:
    assert ring(4, a=0).balanced(A, {A: IDLE}, LOW) == ring(4, a=0)
    assert ring(4, a=0, b=1).balanced(A, {B: IDLE}, LOW) == ring(4, a=0, b=1)


@few
@given(rings(), st.data())
def test_balancing_moves_half_the_hot_arc_or_nothing(made: Ring, data: st.DataObject) -> None:
    hot = data.draw(st.sampled_from(made.workers))
    loads = {worker: data.draw(st.sampled_from([IDLE, BUSY])) for worker in made.workers}
    after = made.balanced(hot, loads, LOW)
    moved = moves("x", made.owners(), after.owners())
    takers = [w for w in (made.neighbour(hot), made.previous(hot)) if w != hot and loads[w] == IDLE]
    assert len(moved) == (len(made.arc(hot)) // 2 if takers else 0)
    assert {move.source for move in moved} <= {hot}
    assert {move.target for move in moved} <= set(takers[:1])
    assert after.zones == made.zones


def test_growing_one_at_a_time_never_loses_a_slice() -> None:
    made = Ring.even(32, workers("x"))
    seen = [made]
    for i in range(1, 12):
        made = made.joined(Worker(WorkerId(f"w{i}"), zone="xy"[i % 2]))
        seen.append(made)
        assert max(lengths(made)) <= 2 * min(lengths(made)) + 1
    for worker in made.workers[1:]:
        made = made.left(worker)
        seen.append(made)
    assert all(sorted(s for w in one.workers for s in one.arc(w)) == [SliceId(s) for s in range(32)] for one in seen)
    assert all(abs(len(b.workers) - len(a.workers)) == 1 for a, b in pairwise(seen))
