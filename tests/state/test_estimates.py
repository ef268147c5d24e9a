"""Aggregates scaled up for shed rows: exact without shedding, unbiased with it, and bounds that hold the truth."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.state.aggregates import Aggregate, NoEstimate, UnsupportedColumn
from springtide.state.aggregates.estimate import Estimated
from springtide.state.logic import Moment
from springtide.testing import StepHarness

COLUMNS = {"k": int, "i": int, "x": float}
ESTIMATES = {"n": agg.count, "ni": lambda **e: agg.count("i", **e), "si": lambda **e: agg.sum("i", **e)} | {
    "sx": lambda **e: agg.sum("x", **e),
    "mx": lambda **e: agg.mean("x", **e),
}


def harness(*, estimate: bool, instances: int = 1, **wanted: Aggregate) -> StepHarness:
    app = App("shed", slices=8)
    rows = app.source("rows", sources.generator(1))
    wanted = wanted or {name: make(estimate=estimate) for name, make in ESTIMATES.items()}  # type: ignore[operator]
    rows.key_by("k").aggregate("totals", **wanted).sink("out", sinks.memory())
    return StepHarness(app, "totals", COLUMNS, instances=instances)


row = st.fixed_dictionaries(
    {
        "k": st.integers(0, 3),
        "i": st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([2**60 + 1, -(2**60)])),
        "x": st.one_of(st.none(), st.integers(-400, 400).map(lambda n: n / 8)),
    }
)


@given(st.lists(st.lists(row, max_size=8), max_size=4))
@settings(max_examples=40, deadline=None)
def test_where_nothing_is_shed_an_estimate_is_exact(epochs: list[list[dict[str, Any]]]) -> None:
    plain, estimated = harness(estimate=False), harness(estimate=True)
    for rows in epochs:
        for exact, found in zip(plain.epoch(rows), estimated.epoch(rows), strict=True):
            for name in ESTIMATES:
                assert found[name] == found[name + "_low"] == found[name + "_high"] == exact[name]
                assert found[name + "_accuracy"] == 1.0


@given(st.lists(st.tuples(st.sampled_from([1.0, 0.5, 0.2]), st.integers(1, 8), st.lists(row, max_size=8)), max_size=4))
@settings(max_examples=40, deadline=None)
def test_each_row_counts_by_its_epochs_chance_however_state_is_spread(
    epochs: list[tuple[float, int, list[dict[str, Any]]]],
) -> None:
    """Horvitz-Thompson, against the formula over the rows themselves; instances come and go."""
    wanted = {"n": agg.count(estimate=True), "sx": agg.sum("x", estimate=True), "mx": agg.mean("x", estimate=True)}
    found = harness(estimate=True, **wanted)
    seen: dict[int, list[tuple[float, float | None]]] = {}
    for kept, instances, rows in epochs:
        found.kept, found.instances = kept, instances
        for r in rows:
            seen.setdefault(r["k"], []).append((kept, r["x"]))
        for out in found.epoch(rows):
            mine = seen[out["k"]]
            values = [(p, x) for p, x in mine if x is not None]
            offered = sum(1 / p for p, _ in mine)
            assert out["n"] == round(offered)
            assert out["n_accuracy"] == out["sx_accuracy"] == pytest.approx(len(mine) / offered)
            assert out["n_low"] <= out["n"] <= out["n_high"]
            assert out["n_low"] >= len(mine)
            if not values:
                assert out["sx"] is out["sx_low"] is out["mx"] is None
                continue
            total = sum(x / p for p, x in values)
            assert out["sx"] == pytest.approx(total)
            assert out["mx"] == pytest.approx(total / sum(1 / p for p, _ in values))
            exact = all(p == 1.0 for p, _ in values)
            for name in ("sx", "mx"):  # Too few values for bounds, where some were shed.
                assert [out[name + "_low"], out[name + "_high"]] == ([out[name]] * 2 if exact else [None] * 2)
            assert (out["n_low"] == out["n_high"]) == all(p == 1.0 for p, _ in mine)


@pytest.mark.parametrize("name", sorted(ESTIMATES))
def test_accumulators_of_arrivals_add_up(name: str) -> None:
    aggregate = ESTIMATES[name](estimate=True)  # type: ignore[operator]
    assert isinstance(aggregate, Estimated)
    values = None if aggregate.column is None else pa.array([3, None, 5, 8])  # type: ignore[attr-defined]
    together = aggregate.weighted(values, 4, np.array([0, 3]), 0.25)
    apart = aggregate.weighted(values, 4, np.arange(4), 0.25)
    combined = aggregate.combine(apart, np.array([0, 3]))
    assert [p.to_pylist() for p in combined] == [p.to_pylist() for p in together]
    assert [p.type for p in together] == aggregate.accumulator(None if values is None else values.type)


def test_a_sum_of_ones_has_the_bounds_of_the_count() -> None:
    found = harness(estimate=True, n=agg.count(estimate=True), s=agg.sum("i", estimate=True))
    found.kept = 0.4
    (out,) = found.epoch([{"k": 1, "i": 1, "x": 0.0}] * 60)
    assert [out["n" + s] for s in ("", "_low", "_high")] == [out["s" + s] for s in ("", "_low", "_high")]


def test_values_that_were_never_seen_may_still_be_there() -> None:
    found = harness(estimate=True, n=agg.count("i", estimate=True), s=agg.sum("i", estimate=True))
    found.kept = 0.5
    (out,) = found.epoch([{"k": 1, "i": None, "x": 0.0}] * 10)
    assert (out["n"], out["n_low"], out["n_accuracy"], out["s"], out["s_high"]) == (0, 0, 0.5, None, None)
    assert out["n_high"] > 0


def test_nan_and_infinity_pass_through_without_a_warning() -> None:
    found = harness(estimate=True, s=agg.sum("x", estimate=True))
    found.kept = 0.5
    with np.errstate(all="raise"):
        rows = [{"k": 0, "i": 0, "x": float("inf")}, {"k": 1, "i": 0, "x": float("nan")}, {"k": 2, "i": 0, "x": 1e200}]
        infinite, nan, huge = found.epoch(rows)
    assert infinite["s"] == float("inf")
    assert nan["s"] != nan["s"]
    assert huge["s"] == 2e200


def test_windows_have_estimates_while_open_and_when_they_close() -> None:
    app = App("clicks")
    clicks = app.source("clicks", sources.generator(1)).key_by("user").window("at", "10 minutes")
    clicks.aggregate("counts", n=agg.count(estimate=True)).sink("out", sinks.memory())
    found = StepHarness(app, "counts", {"user": str, "at": datetime}, kept=0.5)
    noon = datetime(2024, 6, 1, 12, tzinfo=UTC)
    (update,) = found.epoch([{"user": "u", "at": noon}] * 20)
    found.kept = 1.0
    found.epoch([{"user": "u", "at": noon}, {"user": "v", "at": noon + timedelta(minutes=11)}])
    (final,) = [r for r in found.epoch([{"user": "v", "at": noon + timedelta(minutes=12)}]) if r["final"]]
    assert (update["n"], final["n"], final["n_accuracy"]) == (40, 41, pytest.approx(21 / 41))
    assert (final["n_low"], final["n_high"]) == (update["n_low"] + 1, update["n_high"] + 1)
    assert final["n_low"] < 41 < final["n_high"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: agg.min("x", estimate=True),
        lambda: agg.max("x", estimate=True),
        lambda: agg.top_k("x", 3, estimate=True),
        lambda: agg.distinct("x", estimate=True),
    ],
)
def test_what_no_sample_tells_is_refused_with_the_reason(make: Any) -> None:
    with pytest.raises(NoEstimate, match=r"of column 'x': expected no estimate=True, as .*unseen.*count, sum and mean"):
        make()


def test_a_column_that_is_no_number_is_refused() -> None:
    with pytest.raises(UnsupportedColumn, match="sum of column 'v'"):
        agg.sum("v", estimate=True).accumulator(pa.string())


def test_results_that_would_share_a_name_are_refused() -> None:
    with pytest.raises(BadGraph, match=r"names of their own.*'n_low'"):
        harness(estimate=True, n=agg.count(estimate=True), n_low=agg.min("x"))
    app = App("clash")
    rows = app.source("rows", sources.generator(1))
    rows.key_by("n_accuracy").aggregate("counts", n=agg.count(estimate=True)).sink("out", sinks.memory())
    with pytest.raises(ValueError, match=r"\['n_accuracy'\] are named like columns of the key"):
        StepHarness(app, "counts", {"n_accuracy": int})


@pytest.mark.parametrize("kept", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(kept: float) -> None:
    with pytest.raises(ValueError, match="share of kept rows above 0 and up to 1"):
        Moment(kept=kept)
