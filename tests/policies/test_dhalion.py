"""Dhalion: a symptom, its cause, one small cure; and no cure again that did not help."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import LECTURE, Step, changes, entry, line

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Instance, Slice, Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.past import AppState, Entry
from springtide.policies.scaling.dhalion import Dhalion
from springtide.policies.scaling.ds2 import Ds2

DHALION = Dhalion(late_s=0.4)
WORD_COUNT = line(16_700, Step(4_300, 20), Step(30_000))
"""Lines a second, words a line: 4 splitters and 12 counters are enough."""
LATE = line(2_000, Step(400), slots=2)
"""Keeps 5 slots busy."""
W0, W1, W2 = (WorkerId(f"w{i}") for i in range(3))


def late(workers: int = 2) -> Snapshot:
    return LATE.sharing(workers, at=1_000.0)


def scaled(decision: Decision) -> tuple[int, dict[str, int]]:
    assert isinstance(decision, Scale), decision
    return decision.workers, dict(decision.parallelism)


def failed(decision: Decision, at: float = 900.0, workers: int = 2) -> Entry:
    return entry(0, at, decision, AppState(workers, 1_600, 2_000, 2), helped=False)


def owned(letters: str, rates: Sequence[float] | None = None) -> tuple[Slice, ...]:
    """By slice of step a, the number of the worker that owns it."""
    return tuple(Slice("a", SliceId(i), WorkerId(f"w{w}"), rates[i] if rates else 100.0) for i, w in enumerate(letters))


def with_instance(snapshot: Snapshot, number: int, **measured: float) -> Snapshot:
    """One instance of step a is different."""
    changed = (replace(i, **measured) if i.number == number else i for i in snapshot.instances)
    return replace(snapshot, instances=tuple(changed))


def test_it_needs_six_steps_where_ds2_needs_one() -> None:
    start = {"a": 1, "b": 1}
    assert changes(Ds2(), WORD_COUNT, start) == [{"a": 4, "b": 12}]
    assert changes(DHALION, WORD_COUNT, start) == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 4},
        {"a": 2, "b": 4},
        {"a": 2, "b": 8},
        {"a": 4, "b": 8},
        {"a": 4, "b": 12},
    ]
    assert len(changes(DHALION, LECTURE, start)) == 5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.builds(Step, st.floats(300, 2_000), st.floats(0.5, 3)), min_size=1, max_size=3))
def test_it_comes_to_rest_and_then_nothing_is_late(steps: list[Step]) -> None:
    """One operator at a time, and never more than doubled."""
    flow = line(2_000, *steps)
    start = dict.fromkeys(flow.steps, 1)
    found = changes(DHALION, flow, start)
    for before, after in zip([start, *found], found, strict=False):
        grown = [name for name in after if after[name] > before[name]]
        assert len([name for name in after if after[name] != before[name]]) == 1
        assert all(after[name] <= 2 * before[name] for name in grown)
    assert flow.served(found[-1] if found else start) > 0.95


def test_the_bottleneck_grows_by_what_was_held_back() -> None:
    """4 of 5 slots: a fifth of the rows were held back, for each 4 that were not; 4 instances and one more."""
    decision = DHALION(late(), ())
    assert scaled(decision) == (3, {"a": 5})
    assert decision.reason == (
        "rows are published 2.0 s after they were due; a is the bottleneck, busy for 100 %; "
        "20 % of its rows are held back; 5 instead of 4 instances, on 3 workers"
    )


def test_a_backlog_that_grows_is_back_pressure_before_rows_are_late() -> None:
    patient = Dhalion(late_s=100)
    before = entry(0, 990.0, Hold("calm"), AppState(2, 1_600, 2_000, 0, lag_rows=2_000))
    assert scaled(patient(late(), (before,))) == (3, {"a": 5}), "4 000 rows wait, 2 000 more than before"
    steady = replace(before, gauge=AppState(2, 1_600, 2_000, 0, lag_rows=3_500))
    assert isinstance(patient(late(), (steady,)), Hold), "500 of 20 000 rows that fell due are no trend"
    assert isinstance(patient(late(), ()), Hold), "one look shows no trend"


def test_skew_is_cured_by_moving_slices_that_fit() -> None:
    """w0 has 1 000 rows/s and w1, the least busy, 400: 300 make them even, and slice 0 alone is too much."""
    snapshot = with_instance(late(), 0, records_in=12_000.0)
    slices = owned("000001111", [500, 200, 150, 100, 50, 100, 100, 100, 100])
    quick = tuple(replace(i, useful_s=i.records_in / 500) for i in snapshot.instances)
    decision = DHALION(replace(snapshot, slices=slices, instances=quick), ())
    assert isinstance(decision, Rebalance)
    assert (decision.slices, decision.source, decision.target) == ({1, 3}, W0, W1)
    assert "skew: instance 0 of a had 12 000 rows at 500 rows/s, its siblings 4 000 at 500" in decision.reason
    assert decision.reason.endswith("2 slices with 300 rows/s of 1 000 go from w0 to w1")


def test_a_queue_far_longer_than_the_others_is_skew_too() -> None:
    snapshot = replace(late(), slices=owned("00011"))
    decision = DHALION(with_instance(snapshot, 0, queue_rows=5_000), ())
    assert isinstance(decision, Scale), "300 rows/s beside 200 can't be made more even by 100"
    snapshot = replace(late(), slices=owned("0000011"))
    assert isinstance(DHALION(with_instance(snapshot, 0, queue_rows=5_000), ()), Rebalance)
    assert isinstance(DHALION(with_instance(snapshot, 0, queue_rows=300), ()), Scale), "less than it does in a second"


def test_one_hot_slice_is_not_moved_around() -> None:
    snapshot = replace(with_instance(late(), 0, records_in=12_000.0), slices=owned("001", [900, 0, 100]))
    assert isinstance(DHALION(snapshot, ()), Scale)


def test_a_slow_worker_keeps_what_it_can_do_in_the_same_time() -> None:
    """Instances on w0 do 100 rows/s, those on w1 400: of 500 + 500 slices' rows a fifth is for w0."""
    slow = tuple(replace(i, useful_s=i.records_in / (100 if i.worker == W0 else 400)) for i in late().instances)
    snapshot = replace(late(), instances=slow, slices=owned("0" * 5 + "1" * 5))
    decision = DHALION(snapshot, ())
    assert isinstance(decision, Rebalance)
    assert (len(decision.slices), decision.source, decision.target) == (3, W0, W1)
    assert "a slow worker: instance 0 of a had 4 000 rows at 100 rows/s, its siblings 4 000 at 400" in decision.reason


def test_a_lower_rate_with_other_rows_is_not_a_slow_worker() -> None:
    snapshot = replace(with_instance(late(), 0, useful_s=30.0, records_in=2_000.0), slices=owned("0" * 5 + "1" * 5))
    assert isinstance(DHALION(snapshot, ()), Scale)


def test_a_cure_that_did_not_help_is_not_tried_again_for_a_while() -> None:
    tried = Scale(2, "", {"a": 4})
    decision = DHALION(late(), (failed(tried, workers=1),))
    assert decision == Hold(
        "rows are published 2.0 s after they were due; scale to 2 did not help 100 s ago; nothing is left to try",
        warning=True,
    )
    assert isinstance(DHALION(late(), (failed(tried, at=400.0, workers=1),)), Scale)
    assert isinstance(DHALION(late(), (replace(failed(tried, workers=1), helped=None),)), Scale), "not known yet"


def test_if_moving_slices_did_not_help_more_instances_are_tried() -> None:
    snapshot = replace(with_instance(late(), 0, records_in=12_000.0), slices=owned("0" * 8 + "1" * 2))
    move = DHALION(snapshot, ())
    assert isinstance(move, Rebalance)
    assert isinstance(DHALION(snapshot, (failed(move),)), Scale)
    other = replace(move, source=W2, target=W0)
    assert DHALION(snapshot, (failed(other),)) == move, "that was another worker's trouble"


def test_more_of_an_operator_may_help_once_another_has_grown() -> None:
    useless = failed(Scale(2, "", {"a": 4}), at=700.0, workers=1)
    other = entry(1, 800.0, Scale(2, "", {"b": 4}), AppState(1, 800, 2_000, 5), helped=True)
    assert isinstance(DHALION(late(), (useless, other)), Scale)


def test_a_worker_less_if_slots_are_idle() -> None:
    decision = DHALION(LATE.sharing(8, at=1_000.0), ())
    assert scaled(decision) == (7, {"a": 14})
    assert decision.reason == "no backlog, and slots are busy for 31 % of the time; 7 workers will do"
    assert isinstance(DHALION(LATE.sharing(6), ()), Hold), "42 %"
    assert isinstance(DHALION(line(1, Step(400)).sharing(1), ()), Hold), "the last one stays"


def test_workers_are_not_let_go_while_rows_wait() -> None:
    idle = LATE.sharing(8)
    behind = replace(idle, epoch_s=1.0, sources=(replace(idle.sources[0], lag_rows=4_100),))
    assert isinstance(DHALION(behind, ()), Hold)
    gathering = replace(idle, epoch_s=1.0, sources=(replace(idle.sources[0], lag_rows=3_900),))
    assert isinstance(DHALION(gathering, ()), Scale), "an epoch's rows have to gather somewhere"


def test_letting_go_that_hurt_is_not_repeated_though_taking_back_helped() -> None:
    idle = LATE.sharing(8, at=1_000.0)
    hurt = failed(Scale(7, "", {"a": 14}), at=800.0, workers=8)
    mended = entry(1, 900.0, Scale(8, "", {"a": 16}), AppState(7, 1_600, 2_000, 2), helped=True)
    assert DHALION(idle, (hurt, mended)) == Hold(
        "too many workers; scale to 7 did not help 200 s ago; nothing is left to try", warning=True
    )


def test_it_holds_without_workers_and_without_rows() -> None:
    assert DHALION(replace(late(), workers=()), ()) == Hold("there are no workers", warning=True)
    nothing = replace(late(), instances=tuple(Instance("a", i, W0, 0, 0, 0) for i in range(4)))
    assert DHALION(nothing, ()) == Hold(
        "rows are published 2.0 s after they were due; nothing is left to try", warning=True
    )


@pytest.mark.parametrize("options", [{"skewed": 1}, {"boldest": 0.5}, {"slow": 1}, {"idle": -0.1}])
def test_options_that_can_not_be_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Dhalion(**options)
