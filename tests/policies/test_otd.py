"""Online task deployment: the four cases, the best pair, and no way back."""

from dataclasses import replace

import pytest
from cluster import A, B, C, D, cluster, worker
from hypothesis import given, settings
from hypothesis import strategies as st
from model import entry

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Slice, Snapshot
from springtide.policies.balancing.otd import Otd
from springtide.policies.decision import Hold, Rebalance, Scale

OTD = Otd(gain=1_000)
QUEUED, BUSY, MIDDLING, LOW = (20_000, 0.2), (10, 0.95), (5_000, 0.6), (10, 0.1)


def traffic(**sent: float) -> dict[tuple[str, WorkerId, SliceId], float]:
    """`a3=500`: worker a sends 500 bytes a second to slice 3 of step count."""
    return {("count", WorkerId(to[0]), SliceId(int(to[1:]))): rate for to, rate in sent.items()}


def moved(snapshot: Snapshot, *, by: Otd = OTD) -> tuple[set[int], str, str]:
    decision = by(snapshot, ())
    assert isinstance(decision, Rebalance), decision
    return set(decision.slices), decision.source, decision.target


@pytest.mark.parametrize("high", [QUEUED, BUSY])
def test_case_1_a_slice_of_a_high_load_worker_goes_where_most_of_its_rows_come_from(high: tuple[float, float]) -> None:
    sent = traffic(a0=900, b0=1_000, a1=100, b1=800, c1=600, a2=50)
    workers = (worker(A, *high), worker(B, *LOW), worker(C, *LOW))
    snapshot = cluster(*workers, owners={"count": "aaabc"}, traffic=sent)
    assert moved(snapshot) == ({1}, A, B), "700 bytes less between workers; slice 0 would save 100"


def test_case_1_says_why() -> None:
    snapshot = cluster(worker(A, *BUSY), worker(B, *LOW), owners={"count": "aab"}, traffic=traffic(a0=700, a1=100))
    decision = OTD(snapshot, ())
    assert decision.reason == "a has 10 rows waiting and 95 % CPU; b has room (100 bytes/s more between workers)"


def test_among_equal_gains_the_move_that_evens_the_load_best_is_made() -> None:
    loads = {("count", 0): 0.6, ("count", 1): 0.3, ("count", 2): 0.1}
    workers = (worker(A, *BUSY), worker(B, *LOW), worker(C, *LOW))
    snapshot = cluster(*workers, owners={"count": "aaac"}, loads=loads | {("count", 3): 0.2})
    assert moved(snapshot) == ({0}, A, B), "0.4 and 0.6 are more even than 0.7 and 0.3 or 0.7 and 0.5"


def test_the_worker_with_the_highest_load_is_helped_first() -> None:
    workers = (worker(A, 0, 0.85), worker(B, 90_000, 0.1), worker(C, *LOW))
    assert moved(cluster(*workers, owners={"count": "aabb"}))[1] == B


def test_case_2_high_loads_and_no_low_one_is_a_warning() -> None:
    snapshot = cluster(worker(A, *BUSY), worker(B, *MIDDLING), owners={"count": "aabb"})
    assert OTD(snapshot, ()) == Hold(
        "no worker has room: a has 10 rows waiting and 95 % CPU; more workers are needed", warning=True
    )


def test_case_3_without_high_loads_the_most_traffic_is_saved() -> None:
    sent = traffic(a0=100, b0=1_500, a1=5_000, b1=6_050, b2=3_000)
    snapshot = cluster(worker(A, *MIDDLING), worker(B, *LOW), owners={"count": "aaaab"}, traffic=sent)
    assert moved(snapshot) == ({2}, A, B)
    assert OTD(snapshot, ()).reason == "no worker's load is high; 3 000 bytes/s less between workers"


def test_case_3_needs_a_gain_above_the_threshold_and_a_low_load_target() -> None:
    at_the_mark = cluster(worker(A, *LOW), worker(B, *LOW), owners={"count": "aaa"}, traffic=traffic(b0=1_000))
    assert OTD(at_the_mark, ()) == Hold(
        "no worker's load is high, and no move saves more than 1 000 bytes/s of traffic"
    )
    assert moved(at_the_mark, by=replace(OTD, gain=999))[0] == {0}
    full = cluster(worker(A, *LOW), worker(B, *MIDDLING), owners={"count": "aaa"}, traffic=traffic(b0=9_000))
    assert isinstance(OTD(full, ()), Hold)


def test_case_4_nothing_is_done() -> None:
    snapshot = cluster(worker(A, *MIDDLING), worker(B, *MIDDLING), owners={"count": "ab"}, traffic=traffic(b0=9_000))
    assert OTD(snapshot, ()) == Hold("no worker's load is high, and none is low")


def test_a_target_is_not_made_busier_than_the_owner_was() -> None:
    loads = {("count", 0): 0.5, ("count", 1): 0.4}
    even = cluster(
        worker(A, *LOW), worker(B, *LOW), owners={"count": "aabbb"}, loads=loads, traffic=traffic(b0=9_000, b1=2_000)
    )
    assert moved(even) == ({0}, A, B), "0.3 + 0.5 is less than 0.9"
    fuller = replace(even, slices=(*even.slices, Slice("count", SliceId(5), B, 100, 0.15)))
    assert moved(fuller) == ({1}, A, B), "0.45 + 0.5 is not, 0.45 + 0.4 is"
    assert moved(fuller, by=replace(OTD, slack=0.1)) == ({0}, A, B)


def test_a_worker_with_two_slots_takes_twice_the_load() -> None:
    loads = {("count", 0): 0.6, ("count", 1): 0.2}
    sent = traffic(b0=9_000)
    big = cluster(worker(A, *LOW), worker(B, *LOW, slots=2), owners={"count": "aabbbbbbb"}, loads=loads, traffic=sent)
    assert moved(big) == ({0}, A, B), "(0.7 + 0.6) / 2 is less than 0.8"


def test_if_no_slice_fits_it_says_so() -> None:
    snapshot = cluster(worker(A, *QUEUED), worker(B, *LOW), owners={"count": "abb"})
    assert OTD(snapshot, ()) == Hold(
        "a has 20 000 rows waiting and 20 % CPU; none of its slices fits on the 1 worker with room", warning=True
    )


def test_what_was_just_moved_does_not_go_back() -> None:
    sent = traffic(a1=9_000, a2=2_000)
    snapshot = cluster(worker(A, *LOW), worker(B, *MIDDLING), owners={"count": "bbba"}, traffic=sent)
    assert moved(snapshot)[0] == {1}
    came = Rebalance("count", frozenset({SliceId(1)}), A, B, "")
    long_ago = (entry(0, 0.0, came),)
    decision = OTD(replace(snapshot, at=1e6), long_ago)
    assert isinstance(decision, Rebalance)
    assert decision.slices == {2}, "the last change is not undone, however long ago"
    later = (*long_ago, entry(1, 1e6, Scale(2, "")))
    decision = OTD(replace(snapshot, at=1e6), later)
    assert isinstance(decision, Rebalance)
    assert decision.slices == {1}, "an earlier one may be, after a while"
    decision = OTD(replace(snapshot, at=500.0), (*long_ago, entry(1, 400.0, Scale(2, ""))))
    assert isinstance(decision, Rebalance)
    assert decision.slices == {2}


@pytest.mark.parametrize("options", [{"queue_low": 10_001}, {"cpu_low": 0.9}, {"cpu_high": 2}, {"gain": -1}])
def test_options_that_can_not_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected 0"):
        Otd(**options)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    names = (A, B, C, D)[: draw(st.integers(1, 4))]
    kinds = st.sampled_from([QUEUED, BUSY, MIDDLING, LOW, LOW])
    workers = [worker(w, *draw(kinds), draw(st.integers(1, 2))) for w in names]
    owners = "".join(draw(st.lists(st.sampled_from(names), min_size=1, max_size=12)))
    loads = {("count", i): draw(st.floats(0, 1)) for i in range(len(owners))}
    pairs = st.tuples(st.just("count"), st.sampled_from(names), st.integers(0, 13).map(SliceId))
    sent = draw(st.dictionaries(pairs, st.floats(0, 1e5), max_size=30))
    return cluster(*workers, owners={"count": owners}, loads=loads, traffic=sent)


def gains(snapshot: Snapshot, slices: list[Slice], targets: list[WorkerId]) -> list[float]:
    """What each move that is open would save, by trying them all."""
    slots = {w.id: w.slots for w in snapshot.workers}
    busy = {w: sum(s.load_s for s in snapshot.slices if s.owner == w) / slots[w] for w in slots}
    sent = snapshot.traffic
    return [
        sent.get((s.operator, to, s.number), 0) - sent.get((s.operator, s.owner, s.number), 0)
        for s in slices
        for to in targets
        if to != s.owner and busy[to] + s.load_s / slots[to] <= busy[s.owner]
    ]


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_it_finds_the_best_of_all_open_moves(snapshot: Snapshot) -> None:
    high = [w for w in snapshot.workers if (w.queue_rows, w.cpu) in (QUEUED, BUSY)]
    low = [w.id for w in snapshot.workers if (w.queue_rows, w.cpu) == LOW]
    decision = OTD(snapshot, ())
    if not isinstance(decision, Rebalance):
        if not high and low:
            assert all(gain <= OTD.gain for gain in gains(snapshot, list(snapshot.slices), low))
        return
    assert decision.target in low
    (number,) = decision.slices
    (one,) = (s for s in snapshot.slices if s.number == number)
    assert one.owner == decision.source != decision.target
    candidates = [s for s in snapshot.slices if s.owner == decision.source] if high else list(snapshot.slices)
    chosen = gains(snapshot, [one], [decision.target])
    assert chosen == [max(gains(snapshot, candidates, low))]
    shuffled = replace(snapshot, traffic=dict(reversed(snapshot.traffic.items())), slices=snapshot.slices[::-1])
    assert OTD(shuffled, ()) == decision, "the order of what was measured does not matter"


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_step_by_step_it_comes_to_an_end(snapshot: Snapshot) -> None:
    """Loads and traffic stay as they are: after some moves there is none left, as none goes back."""
    past = ()
    for number in range(100):
        decision = OTD(snapshot, past)
        if not isinstance(decision, Rebalance):
            return
        past = (*past, entry(number, snapshot.at, decision))
        slices = tuple(replace(s, owner=decision.target) if s.number in decision.slices else s for s in snapshot.slices)
        snapshot = replace(snapshot, slices=slices)
    raise AssertionError("it goes round and round")
