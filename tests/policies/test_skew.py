"""Skew: a hot slice is split from its neighbours, and its keys are named."""

import pytest

from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Edge, HotKey, Instance, MeasuredWorker, Slice, Snapshot, Source
from springtide.policies.balancing.skew import Skew
from springtide.policies.decision import Hold, Rebalance

A, B = WorkerId("a"), WorkerId("b")


def snapshot(rates: list[float], owners: str, *keys: HotKey) -> Snapshot:
    slices = tuple(
        Slice("count", SliceId(n), WorkerId(owner), rate, rate / 1000)
        for n, (rate, owner) in enumerate(zip(rates, owners, strict=True))
    )
    instances = tuple(Instance("count", n, w, 1.0, 100.0, 10.0) for n, w in enumerate((A, B)))
    return Snapshot(
        0.0,
        10.0,
        5,
        (Source("rows", 1.0),),
        (Edge("rows", "count"),),
        instances,
        (MeasuredWorker(A, 1), MeasuredWorker(B, 1)),
        slices,
        hot_keys=keys,
    )


def test_the_neighbours_of_a_hot_slice_go_and_its_keys_are_named() -> None:
    hot = HotKey("count", SliceId(1), '["the"]', 700.0)
    decision = Skew()(snapshot([50, 800, 60, 40, 50, 50, 50, 50], "aaaabbbb", hot), ())
    assert isinstance(decision, Rebalance)
    assert (decision.slices, decision.source, decision.target) == ({0, 2, 3}, A, B)
    assert "slice 1 of count has 5.6 times the mean's load" in decision.reason
    assert 'its hottest keys: ["the"] with 700 rows/s' in decision.reason


def test_no_more_goes_than_makes_the_two_even() -> None:
    decision = Skew()(snapshot([200, 800, 210, 190, 300, 50, 50, 50], "aaaabbbb"), ())
    assert isinstance(decision, Rebalance)
    assert decision.slices == {0, 2}, "410 of a surplus of 475"


def test_a_slice_that_is_alone_is_told_of() -> None:
    decision = Skew()(snapshot([0, 800, 0, 0, 50, 50, 50, 50], "aaaabbbb"), ())
    assert isinstance(decision, Hold)
    assert decision.warning
    assert "can't be split further" in decision.reason


@pytest.mark.parametrize(
    ("rates", "owners", "why"),
    [
        ([100, 120, 90, 110], "aabb", "no slice stands out"),
        ([0, 0, 0, 0], "aabb", "no slice stands out"),
        ([10, 900, 10, 10, 800, 10, 10, 100], "aaaabbbb", "is no busier than the others"),
    ],
)
def test_nothing_is_done_without_need(rates: list[float], owners: str, why: str) -> None:
    decision = Skew()(snapshot(rates, owners), ())
    assert isinstance(decision, Hold)
    assert why in decision.reason


def test_options_that_mean_nothing() -> None:
    with pytest.raises(ValueError, match="hot and uneven: expected more than 1"):
        Skew(hot=1.0)
