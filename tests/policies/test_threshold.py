"""Thresholds: an overloaded worker is relieved by the nearest that has room, else by a new one."""

import pytest
from cluster import A, B, C, D, cluster, worker
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.metrics.snapshot import MeasuredWorker
from springtide.plan.ring import Ring
from springtide.policies.decision import Hold, Rebalance, Scale
from springtide.policies.scaling.threshold import Threshold

RULE = Threshold()
HOT, MIDDLING, LIGHT = (20_000, 0.95), (5_000, 0.5), (10, 0.1)


def load(name: str, kind: tuple[float, float]) -> MeasuredWorker:
    return worker(dict(zip("abcd", (A, B, C, D), strict=True))[name], *kind)


def test_half_the_arc_goes_to_the_clockwise_neighbour() -> None:
    snapshot = cluster(load("a", HOT), load("b", LIGHT), load("c", MIDDLING), owners={"count": "aaaaabbbcc"})
    assert RULE(snapshot, ()) == Rebalance(
        "count",
        frozenset({3, 4}),
        A,
        B,
        "a has 20 000 rows waiting and 95 % CPU; b has 10 rows waiting and 10 % CPU and takes 2 slices",
    )


def test_an_arc_may_go_past_the_last_slice() -> None:
    snapshot = cluster(load("a", MIDDLING), load("b", HOT), load("c", LIGHT), owners={"count": "bbccaaaabb"})
    decision = RULE(snapshot, ())
    assert isinstance(decision, Rebalance)
    assert (decision.slices, decision.source, decision.target) == (frozenset({0, 1}), B, C)


def test_the_last_one_leans_on_the_first() -> None:
    snapshot = cluster(load("a", LIGHT), load("b", MIDDLING), load("c", HOT), owners={"count": "aabbcccc"})
    decision = RULE(snapshot, ())
    assert isinstance(decision, Rebalance)
    assert (decision.slices, decision.target) == (frozenset({6, 7}), A)


def test_a_neighbour_without_room_asks_its_own_neighbour_first() -> None:
    owners = {"count": "aaaabbbbccdd"}
    snapshot = cluster(load("a", HOT), load("b", MIDDLING), load("c", LIGHT), load("d", LIGHT), owners=owners)
    decision = RULE(snapshot, ())
    assert isinstance(decision, Rebalance)
    assert (decision.source, decision.target, decision.slices) == (B, C, frozenset({6, 7}))
    assert decision.reason.endswith("and takes 2 slices of b so that this one can help")


def test_a_worker_without_slices_takes_the_last_ones() -> None:
    decision = RULE(cluster(load("a", HOT), load("b", LIGHT), owners={"count": "aaaa"}), ())
    assert isinstance(decision, Rebalance)
    assert decision.slices == {2, 3}


def test_the_busiest_step_is_shared() -> None:
    loads = {("sum", 1): 0.9}
    snapshot = cluster(load("a", HOT), load("b", LIGHT), owners={"count": "aaab", "sum": "aabb"}, loads=loads)
    decision = RULE(snapshot, ())
    assert isinstance(decision, Rebalance)
    assert (decision.operator, decision.slices) == ("sum", {1})


def test_a_new_worker_comes_if_none_has_room_or_nothing_can_be_shared() -> None:
    why = "a has 20 000 rows waiting and 95 % CPU, and no other worker has room"
    full = cluster(load("a", HOT), load("b", MIDDLING), owners={"count": "aabb"})
    assert RULE(full, ()) == Scale(3, why)
    assert RULE(cluster(load("a", HOT), load("b", LIGHT), owners={"count": "ab"}), ()) == Scale(3, why)
    assert RULE(cluster(load("a", HOT)), ()) == Scale(2, why)


def test_overloaded_takes_both_a_queue_and_busy_processors() -> None:
    for one in ((20_000, 0.79), (9_999, 0.99)):
        assert isinstance(RULE(cluster(load("a", one), load("b", MIDDLING)), ()), Hold)
    assert isinstance(RULE(cluster(load("a", (10_000, 0.8)), load("b", MIDDLING)), ()), Scale)


def test_the_most_overloaded_is_helped_first() -> None:
    workers = (load("a", (11_000, 0.9)), load("b", LIGHT), load("c", (30_000, 0.9)), load("d", LIGHT))
    decision = RULE(cluster(*workers, owners={"count": "aabbccdd"}), ())
    assert isinstance(decision, Rebalance)
    assert decision.source == C


def test_one_leaves_if_it_and_its_neighbour_are_light() -> None:
    snapshot = cluster(load("a", LIGHT), load("b", MIDDLING), load("c", LIGHT))
    assert RULE(snapshot, ()) == Scale(
        2, "c has 10 rows waiting and 10 % CPU; a has 10 rows waiting and 10 % CPU and can take over from it"
    )
    apart = cluster(load("a", LIGHT), load("b", MIDDLING), load("c", LIGHT), load("d", MIDDLING))
    assert isinstance(RULE(apart, ()), Hold)
    assert isinstance(RULE(cluster(load("a", LIGHT)), ()), Hold), "the last one stays"
    assert isinstance(RULE(cluster(), ()), Hold)


@pytest.mark.parametrize(
    "options", [{"queue_low": 10_000}, {"queue_low": -1}, {"cpu_low": 0.8}, {"cpu_high": 1.2}, {"cpu_low": -0.1}]
)
def test_marks_that_cross_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected 0"):
        Threshold(**options)


kinds = st.sampled_from([HOT, MIDDLING, LIGHT])


@settings(max_examples=120, deadline=None)
@given(st.lists(kinds, min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_what_it_moves_is_the_givers_goes_to_a_light_one_and_leaves_the_giver_some(
    loads: list[tuple[float, float]], owned: list[int]
) -> None:
    workers = [load(name, kind) for name, kind in zip("abcd", loads, strict=False)]
    owners = "".join("abcd"[i % len(workers)] for i in owned)
    decision = RULE(cluster(*workers, owners={"count": owners}), ())
    if isinstance(decision, Rebalance):
        assert len(decision.slices) == owners.count(decision.source) // 2 > 0
        assert all(owners[s] == decision.source for s in decision.slices)
        light = [w.id for w in workers if (w.queue_rows, w.cpu) == LIGHT]
        assert decision.target in light
    elif isinstance(decision, Scale):
        assert abs(decision.workers - len(workers)) == 1
        assert decision.workers >= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 19), min_size=2, max_size=4, unique=True))
def test_on_a_ring_it_is_half_the_distance_as_the_ring_itself_would_share(tokens: list[int]) -> None:
    """The neighbour's token goes back by half of the arc."""
    ring = Ring(20, tuple(zip((A, B, C, D), tokens, strict=False)))
    hot, neighbour = ring.workers[0], ring.workers[1]
    workers = [worker(w, *(HOT if w == hot else LIGHT)) for w in ring.workers]
    decision = RULE(cluster(*workers, owners={"count": "".join(ring.owners())}), ())
    arc = ring.arc(hot)
    if len(arc) < 2:
        return
    assert isinstance(decision, Rebalance)
    assert (decision.target, decision.slices) == (neighbour, frozenset(arc[len(arc) - len(arc) // 2 :]))
