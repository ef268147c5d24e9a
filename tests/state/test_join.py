"""Joins against an oracle that looks at every pair: the same rows come out, in the same epochs, each exactly once."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_oracle import JoinOracle, multiset

from springtide import App, sinks, sources
from springtide.conditions.errors import BadCondition
from springtide.dataflow.errors import BadGraph
from springtide.errors import BadType, BadValue
from springtide.state.errors import BadUpdate
from springtide.state.join import HOW
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEFT = {"k": str, "at": datetime, "x": int}
RIGHT = {"id": str, "at": datetime, "y": int}
Row = dict[str, Any]
SPANS = (timedelta(seconds=1), timedelta(seconds=3))


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def harness(instances: int = 1, **options: Any) -> StepHarness:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    left.key_by("k").join("both", right.key_by("id"), **options).sink("out", sinks.memory())
    return StepHarness(app, "both", [LEFT, RIGHT], instances=instances, hash=lambda key: stable_hash(key) % 3 << 61)


keys = st.sampled_from(["a", "b", "c", None])
rows_of_a_side = st.lists(st.tuples(keys, st.integers(0, 40), st.integers(0, 3)), max_size=8)
epochs_of_rows = st.lists(st.tuples(rows_of_a_side, rows_of_a_side), max_size=8)


@settings(max_examples=200, deadline=None)
@given(
    epochs_of_rows,
    st.sampled_from(sorted(HOW)),
    st.integers(-10, 10),
    st.integers(0, 12),
    st.integers(0, 15),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_all_pairs_come_once_and_rows_without_a_match_when_none_can_come(
    epochs: list[Any], how: str, low_s: int, width_s: int, late_s: int, instances: list[int]
) -> None:
    """Times go up and down, rows come twice, keys collide, slices change hands."""
    high_s = low_s + width_s
    span = (timedelta(seconds=low_s), timedelta(seconds=high_s))
    joined = harness(how=how, time=("at", "at"), within=span, late=f"{late_s} seconds")
    oracle = JoinOracle(how, low_s, high_s, late_s)
    seen: Counter[tuple[Any, ...]] = Counter()
    far = [{"k": "far", "at": at(10_000), "x": 0}], [{"id": "farther", "at": at(10_000), "y": 0}]
    drawn = [
        ([{"k": k, "at": at(s), "x": x} for k, s, x in lefts], [{"id": k, "at": at(s), "y": y} for k, s, y in rights])
        for lefts, rights in epochs
    ]
    for number, (lefts, rights) in enumerate([*drawn, far, ([], [])]):
        joined.instances = instances[number % len(instances)]
        oracle.epoch(lefts, rights)
        seen += multiset(joined.epoch(lefts, rights))
        assert seen == oracle.expected()
        assert joined.late_rows == oracle.late
    assert {row["k"] for row in joined.state()} <= {"far", "farther"}, "nothing is left of what is over"
    assert joined.keys == len(joined.state())


def test_a_condition_decides_also_who_has_found_no_match() -> None:
    span = {"time": ("at", "at"), "within": ("0 seconds", "10 seconds")}
    expression, function = pc.field("x") <= pc.field("y"), lambda rows: pc.less_equal(rows["x"], rows["y"])
    for where in (expression, function, "left.x <= right.y", "x <= y"):
        joined = harness(how="left", where=where, **span)
        assert joined.epoch([{"k": "a", "at": at(0), "x": 3}], [{"id": "a", "at": at(1), "y": 2}]) == []
        assert [r["y"] for r in joined.epoch([], [{"id": "a", "at": at(2), "y": 3}])] == [3]
        joined.epoch([{"k": "b", "at": at(0), "x": 9}], [{"id": "b", "at": at(0), "y": None}])
        joined.epoch([{"k": "z", "at": at(60), "x": 0}], [{"id": "z", "at": at(60), "y": 1}])
        assert [(r["k"], r["x"], r["y"]) for r in joined.epoch([], [])] == [("b", 9, None)]


def test_a_row_goes_with_the_first_microsecond_in_which_nothing_can_match_it() -> None:
    joined = harness(how="left", time=("at", "at"), within=("0 seconds", "1 second"))
    joined.epoch([{"k": "a", "at": at(0), "x": 1}], [])
    for microseconds, expected in ((0, []), (1, [1]), (2, [])):
        later = at(1) + timedelta(microseconds=microseconds)
        joined.epoch([{"k": "z", "at": later, "x": 0}], [{"id": "z", "at": later, "y": 0}])
        assert [row["x"] for row in joined.epoch([], []) if row["k"] == "a"] == expected


def test_without_an_interval_all_rows_wait_for_ever() -> None:
    joined = harness()
    assert joined.epoch([{"k": "a", "at": None, "x": 1}], []) == []
    assert len(joined.epoch([], [{"id": "a", "at": at(9), "y": 1}, {"id": "a", "at": at(9), "y": 1}])) == 2
    assert len(joined.epoch([{"k": "a", "at": at(10**6), "x": 2}], [])) == 2
    assert joined.epoch([{"k": None, "at": at(0), "x": 2}], [{"id": None, "at": at(0), "y": 2}]) == []
    assert (joined.keys, joined.watermark_us) == (1, None)


def test_rows_without_a_time_or_of_a_far_future_are_counted() -> None:
    joined = harness(time=("at", "at"), within=("0 seconds", "10 seconds"), how="full")
    ahead = datetime(9999, 1, 1, tzinfo=UTC)
    joined.epoch([{"k": "a", "at": None, "x": 1}, {"k": "a", "at": ahead, "x": 1}], [{"id": "a", "at": None, "y": 1}])
    joined.epoch([], [])
    assert (joined.malformed_rows, joined.ahead_rows, joined.keys) == (2, 1, 0)
    assert joined.watermark_us is None


def test_a_stream_joined_with_itself() -> None:
    app = App("app", slices=8)
    bids = app.source("bids", sources.generator(1)).key_by("k")
    bids.join("pairs", bids, time=("at", "at"), within=("1 second", "10 seconds")).sink("out", sinks.memory())
    pairs = StepHarness(app, "pairs", [LEFT, LEFT])
    rows = [{"k": "a", "at": at(s), "x": s} for s in (0, 1, 5, 30)]
    assert [(r["x"], r["x_right"]) for r in pairs.epoch(rows, rows)] == [(0, 1), (0, 5), (1, 5)]


def test_streams_with_nothing_beside_their_key() -> None:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    left.key_by("k").join("both", right.key_by("k")).sink("out", sinks.memory())
    both = StepHarness(app, "both", [{"k": int}, {"k": int}])
    assert both.epoch([{"k": 1}, {"k": 1}, {"k": 2}], []) == []
    assert both.epoch([], [{"k": 1}, {"k": 3}]) == [{"k": 1}, {"k": 1}]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"how": "outer"}, "how= one of"),
        ({"how": "left"}, "time= and within= or window= for how="),
        ({"within": ("0 seconds", "1 second")}, "one of within= and window="),
        ({"time": ("at", "at"), "within": ("5 seconds", "1 second")}, "an interval that begins before it ends"),
        ({"time": ("at", "at"), "within": "1 second"}, "the least and the most time"),
        ({"time": ("at", "at"), "within": ("soon", "1 second")}, "'soon' is not a duration"),
        ({"time": "at", "within": ("0 seconds", "1 second")}, "two column names"),
        ({"where": 3}, "SQL text such as"),
        ({"how": ["left"]}, "how= one of"),
        ({"suffix": None}, "suffix= text such as"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_step(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadGraph, match=told) as refused:
        harness(**options)
    assert refused.value.step == "both"


def test_columns_that_do_not_fit_are_refused() -> None:
    span: dict[str, Any] = {"within": ("0 seconds", "1 second")}
    with pytest.raises(BadType, match="column 'x' of the left stream to be a timestamp, got int64"):
        harness(time=("x", "at"), **span)
    with pytest.raises(BadValue, match=r"expected a timestamp among .* of the right stream, got 'when'"):
        harness(time=("at", "when"), **span)
    with pytest.raises(BadValue, match="'k' is part of the key"):
        harness(time=("k", "at"), **span)
    with pytest.raises(BadValue, match=r"the columns \['at'\] would be there twice"):
        harness(suffix="")
    with pytest.raises(BadValue, match=r"where=\(z > 1\): expected an expression over columns among .*, got No match"):
        harness(where=pc.field("z") > 1)
    with pytest.raises(BadValue, match=r"where=x: expected something that is true or false, got int64"):
        harness(where=pc.field("x"))
    with pytest.raises(BadValue, match=r"out of range: expected a duration from 0"):
        harness(time=("at", "at"), late=timedelta(seconds=-1), **span)


def test_a_right_time_may_be_named_like_the_left_key() -> None:
    app = App("app", slices=8)
    left, right = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    options: dict[str, Any] = {"time": ("when", "at"), "within": ("0 seconds", "1 second")}
    left.key_by("at").join("both", right.key_by("id"), **options).sink("out", sinks.memory())
    both = StepHarness(app, "both", [{"at": str, "when": datetime}, {"id": str, "at": datetime}])
    found = both.epoch([{"at": "gate", "when": at(0)}], [{"id": "gate", "at": at(1)}])
    assert found == [{"at": "gate", "when": at(0), "at_right": at(1)}]


@settings(max_examples=60, deadline=None)
@given(
    epochs_of_rows,
    st.sampled_from(
        [
            ("left.x <= right.y", lambda a, b: a["x"] <= b["y"]),
            ("left.at < right.at AND y - x <> 1", lambda a, b: a["at"] < b["at"] and b["y"] - a["x"] != 1),
            (
                "right.at - left.at IN (INTERVAL '1' SECOND, INTERVAL '3' SECONDS)",
                lambda a, b: b["at"] - a["at"] in SPANS,
            ),
            ("right.id = 'a' OR left.k = 'b'", lambda a, b: b["id"] == "a" or a["k"] == "b"),
        ]
    ),
)
def test_a_condition_as_text_says_which_pairs_match(epochs: list[Any], condition: Any) -> None:
    """All pairs of equal keys that it is true of, each once, however the rows come."""
    text, fits = condition
    joined = harness(where=text)
    seen: Counter[tuple[Any, ...]] = Counter()
    all_left: list[Row] = []
    all_right: list[Row] = []
    for lefts, rights in epochs:
        all_left += (left := [{"k": k, "at": at(s), "x": x} for k, s, x in lefts])
        all_right += (right := [{"id": k, "at": at(s), "y": y} for k, s, y in rights])
        seen += multiset(joined.epoch(left, right))
        assert seen == multiset(
            {"k": a["k"], "at": a["at"], "x": a["x"], "at_right": b["at"], "y": b["y"]}
            for a in all_left
            for b in all_right
            if a["k"] is not None and a["k"] == b["id"] and fits(a, b)
        )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("left.x <=", "expected a condition"),
        ("left.y <= 3", r"columns among left \['at', 'k', 'x'\] and right \['at', 'y'\], got 'left.y'"),
        ("at IS NULL", r"left\.at or right\.at, as both streams have it, got 'at'"),
        ("orders.x = 1", r"columns of left and right, such as .*, got 'orders.x'"),
        ("left.x = left.k", "types that go together"),
    ],
)
def test_a_condition_as_text_that_does_not_fit_is_told_with_the_step(text: str, told: str) -> None:
    with pytest.raises(BadCondition, match=f"step 'both': where=.*{told}"):
        harness(where=text)


def test_a_condition_that_is_none_is_told() -> None:
    joined = harness(where=lambda rows: rows["x"])
    with pytest.raises(BadUpdate, match="booleans"):
        joined.epoch([{"k": "a", "at": at(0), "x": 1}], [{"id": "a", "at": at(0), "y": 1}])


def test_large_batches_of_one_key_are_paired_without_a_loop() -> None:
    joined = harness(time=("at", "at"), within=("0 seconds", "0 seconds"))
    left = pa.table({"k": ["a"] * 20_000, "at": [at(i) for i in range(20_000)], "x": range(20_000)})
    right = pa.table({"id": ["a"] * 20_000, "at": [at(i) for i in reversed(range(20_000))], "y": range(20_000)})
    assert len(joined.epoch(left, right)) == 20_000
