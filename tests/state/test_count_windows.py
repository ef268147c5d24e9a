"""Windows of a number of rows, against lists in plain Python."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash


def harness(size: Any, **aggregates: Any) -> StepHarness:
    app = App("app", slices=8)
    stream = app.source("rows", sources.generator(1)).key_by("k").count_window(size)
    stream.aggregate("step", **(aggregates or {"n": agg.count(), "total": agg.sum("n")})).sink("out", sinks.memory())
    return StepHarness(app, "step", {"k": str, "n": int}, hash=lambda key: stable_hash(key) % 3 << 61)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=9), max_size=8),
    st.integers(1, 4),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_each_window_has_as_many_rows_in_the_order_in_which_they_came(
    epochs: list[Any], size: int, instances: list[int]
) -> None:
    step, came = harness(size), dict[str, list[int]]()
    for number, drawn in enumerate(epochs):
        step.instances = instances[number % len(instances)]
        before = {key: len(came.get(key, [])) for key, _ in drawn}
        for key, n in drawn:
            came.setdefault(key, []).append(n)
        expected = []
        for key, had in before.items():
            rows = came[key]
            for window in range(had // size, -(-len(rows) // size)):
                part = rows[window * size : (window + 1) * size]
                expected.append((key, window, len(part), sum(part), len(part) == size))
        found = step.epoch([{"k": key, "n": n} for key, n in drawn])
        assert sorted((r["k"], r["window_number"], r["n"], r["total"], r["final"]) for r in found) == sorted(expected)


@pytest.mark.parametrize("size", [0, -1, 2.5, "3", True])
def test_a_window_has_at_least_one_row(size: Any) -> None:
    with pytest.raises(BadGraph, match="how many rows a window has"):
        harness(size)


def test_results_have_names_of_their_own() -> None:
    with pytest.raises((StepFailed, ValueError), match="named like columns of the key or the window"):
        harness(2, window_number=agg.count())


def test_columns_of_the_key_can_be_aggregated_and_be_in_conditions() -> None:
    step = harness(2, last=agg.max("k"), a=agg.count(where="k = 'a'"), n=agg.count("n"))
    rows = [{"k": key, "n": 1} for key in "aab"]
    found = [(row["k"], row["last"], row["a"], row["n"]) for row in step.epoch(rows)]
    assert sorted(found) == [("a", "a", 2, 2), ("b", "b", 0, 1)]
