"""Policies by name; and what all of them promise."""

import pickle

import pytest
from cluster import A, B, cluster, worker
from model import LECTURE

from springtide.metrics.snapshot import Snapshot
from springtide.policies.registry import POLICIES, policy

NAMES = sorted(POLICIES)
SNAPSHOTS = (
    LECTURE.apart({"a": 1, "b": 1}),
    LECTURE.sharing(40),
    cluster(worker(A, 20_000, 0.9), worker(B), owners={"count": "aaab"}),
    cluster(),
)


def test_there_are_four() -> None:
    assert NAMES == ["dhalion", "ds2", "otd", "threshold"]


def test_another_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"expected a policy of \['dhalion', 'ds2', 'otd', 'threshold'\], got 'ds3'"):
        policy("ds3")


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_snapshot_gives_the_same_decision_with_a_reason(name: str, snapshot: Snapshot) -> None:
    decision = policy(name)(snapshot, ())
    assert decision.reason
    assert policy(name)(snapshot, ()) == decision
    assert pickle.loads(pickle.dumps(policy(name))) == policy(name), "its options are plain data"
