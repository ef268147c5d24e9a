"""Joins of rows in one window, against an oracle that looks at every pair, epoch by epoch."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_oracle import JoinOracle, Row, multiset

from springtide import App, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.state.join import HOW
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash

UNIX = datetime(1970, 1, 1, tzinfo=UTC)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
LEFT, RIGHT = {"k": str, "at": datetime, "x": int}, {"id": str, "at": datetime, "y": int}


def at(second: int) -> datetime:
    return MIDNIGHT + timedelta(seconds=second)


@dataclass
class WindowOracle(JoinOracle):
    """Rows match in one window of `high_s` seconds; they are late, and go, when it is over."""

    def _end(self, row: Row) -> datetime:
        size = timedelta(seconds=self.high_s)
        return UNIX + ((row["at"] - UNIX) // size + 1) * size

    def _late(self, row: Row) -> bool:
        return self.watermark is not None and self._end(row) <= self.watermark

    def _pair(self, left: Row, right: Row) -> bool:
        return left["k"] is not None and left["k"] == right["id"] and self._end(left) == self._end(right)

    def _over(self, row: Row, key: str, after_s: int) -> bool:
        return row[key] is None or self._late(row)


def harness(**options: Any) -> StepHarness:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    left.key_by("k").join("both", right.key_by("id"), time=("at", "at"), **options).sink("out", sinks.memory())
    return StepHarness(app, "both", [LEFT, RIGHT], hash=lambda key: stable_hash(key) % 3 << 61)


rows_of_a_side = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 40), st.integers(0, 3)), max_size=8
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(rows_of_a_side, rows_of_a_side), max_size=8),
    st.sampled_from(sorted(HOW)),
    st.integers(1, 15),
    st.integers(0, 15),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_rows_of_one_window_meet_once_and_the_others_go_when_it_is_over(
    epochs: list[Any], how: str, size_s: int, late_s: int, instances: list[int]
) -> None:
    joined = harness(how=how, window=f"{size_s} seconds", late=f"{late_s} seconds")
    oracle, seen = WindowOracle(how, 0, size_s, late_s), Counter[tuple[Any, ...]]()
    far = [{"k": "far", "at": at(10_000), "x": 0}], [{"id": "farther", "at": at(20_000), "y": 0}]
    drawn = [
        ([{"k": k, "at": at(s), "x": x} for k, s, x in lefts], [{"id": k, "at": at(s), "y": y} for k, s, y in rights])
        for lefts, rights in epochs
    ]
    for number, (lefts, rights) in enumerate([*drawn, far, ([], [])]):
        joined.instances = instances[number % len(instances)]
        oracle.epoch(lefts, rights)
        found = joined.epoch(lefts, rights)
        assert all(r["window_end"] - r["window_start"] == timedelta(seconds=size_s) for r in found)
        assert all(r["window_start"] <= (r["at"] or r["at_right"]) < r["window_end"] for r in found)
        seen += multiset(found)
        assert seen == oracle.expected()
        assert joined.late_rows == oracle.late
    assert {row["k"] for row in joined.state()} <= {"far", "farther"}, "nothing is left of what is over"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": "0 seconds"}, "longer than nothing"),
        ({"window": "soon"}, "'soon' is not a duration"),
        ({"window": "1 second", "within": ("0 seconds", "1 second")}, "within= or window=, not both"),
        ({"window": "1 second", "ttl": "1 hour"}, "no ttl="),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_step(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadGraph, match=told) as refused:
        harness(**options)
    assert refused.value.step == "both"
