"""95 % intervals hold the truth as often as they say, whatever the values; where too little is known there are none."""

import numpy as np
import pyarrow as pa
import pytest
from coverage_kit import Values, lognormal, sampled, share

from springtide import App, agg, sinks, sources
from springtide.state.aggregates.estimate import result_fields
from springtide.state.aggregates.estimated_sum import EstimatedMean, EstimatedSum
from springtide.state.aggregates.interval import count_interval, mean_interval, sum_interval
from springtide.state.aggregates.spread import ENOUGH, ENOUGH_EQUAL
from springtide.testing import StepHarness

HOLD = (0.925, 0.985)
"""0.93 to 0.98, and what chance does to a few thousand keys."""
SHAPES: dict[str, Values] = {
    "uniform": lambda random, n: random.random(n),
    "normal": lambda random, n: random.normal(size=n),
    "student, 5 degrees": lambda random, n: random.standard_t(5, size=n),
    "exponential": lambda random, n: random.exponential(size=n),
    "gamma, shape 1/2": lambda random, n: random.gamma(0.5, size=n),
    "pareto, a = 3": lambda random, n: 1.0 + random.pareto(3.0, size=n),
    "lognormal, sigma 1": lognormal(1.0),
    "lognormal, sigma 1.5": lognormal(1.5),
    "lognormal, sigma 1.5, negative": lambda random, n: -lognormal(1.5)(random, n),
    "half of them alike": lambda random, n: np.where(random.random(n) < 0.5, 1.0, lognormal(1.0)(random, n)),
}


@pytest.mark.parametrize("kept", [(0.5,), (0.2,), (0.8,), (0.35, 0.5, 0.65), (1.0, 0.5)])
def test_bounds_of_a_count_hold_the_truth_for_95_of_100_keys(kept: tuple[float, ...]) -> None:
    found = sampled(kept, SHAPES["uniform"])
    low, high = count_interval(found.shed)
    held = [found.shed.seen + low, found.rows, found.shed.seen + high]
    # A key can lose rows in an epoch that shows none of its rows: with epochs that shed and epochs that do not,
    # keys of few rows hold less often.
    assert 0.93 <= share(*held) <= 0.97
    for least, most in ((15, 30), (30, 100), (100, 501)):
        some = (found.rows >= least) & (found.rows < most)
        assert 0.93 <= share(*(h[some] for h in held)) <= 0.985
    if kept == (0.5,):
        small = found.rows < 15
        assert 0.93 <= share(*(h[small] for h in held)) <= 0.985


def held(kept: tuple[float, ...], values: Values, keys: int, sizes: tuple[int, int]) -> tuple[float, float, float]:
    """The share of keys with bounds; of these, the shares whose sum and whose mean they hold."""
    found = sampled(kept, values, keys, sizes)
    of_sum = sum_interval(found.shed, found.moments)
    of_mean = mean_interval(found.shed, found.moments, found.mean)
    assert (of_sum.known == of_mean.known).all()
    given = of_sum.known
    bounds = [found.seen_total + of_sum.low, found.total, found.seen_total + of_sum.high]
    means = [of_mean.low, found.total / found.rows, of_mean.high]
    return float(given.mean()), share(*(b[given] for b in bounds)), share(*(m[given] for m in means))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kept", [(0.5,), (0.2,), (0.35, 0.5, 0.65)])
def test_bounds_of_sum_and_mean_hold_the_truth_for_95_of_100_keys(kept: tuple[float, ...], shape: str) -> None:
    given, of_sum, of_mean = held(kept, SHAPES[shape], 5_000, (4, 500))
    assert 0.3 <= given <= 0.6
    assert HOLD[0] <= of_sum <= HOLD[1]
    assert HOLD[0] <= of_mean <= HOLD[1]


@pytest.mark.parametrize("shape", ["uniform", "exponential", "lognormal, sigma 1.5"])
def test_bounds_hold_when_one_row_in_twenty_is_kept(shape: str) -> None:
    given, of_sum, of_mean = held((0.05,), SHAPES[shape], 1_500, (300, 3_000))
    assert given > 0.8
    assert HOLD[0] <= of_sum <= HOLD[1]
    assert HOLD[0] <= of_mean <= HOLD[1]


def test_equal_values_are_not_taken_for_all_there_are() -> None:
    """Of zeros with a one among twenty, a few dozen often show nothing but zeros."""
    _, of_sum, of_mean = held((0.2,), lambda random, n: (random.random(n) < 0.05) * 1.0, 5_000, (100, 300))
    assert of_sum >= HOLD[0]
    assert of_mean >= HOLD[0]


def test_skew_makes_the_interval_longer_on_its_side_alone() -> None:
    found = sampled((0.5,), lognormal(1.5), 200, (100, 500))
    bounds = mean_interval(found.shed, found.moments, found.mean)
    below, above = found.mean - bounds.low, bounds.high - found.mean
    assert (above > below).mean() > 0.99
    assert np.median(above / below) > 1.5
    even = sampled((0.5,), lambda random, n: random.random(n), 200, (100, 500))
    bounds = mean_interval(even.shed, even.moments, even.mean)
    assert np.median((bounds.high - even.mean) / (even.mean - bounds.low)) == pytest.approx(1.0, abs=0.05)


def step(kept: float) -> StepHarness:
    app = App("shed", slices=8)
    wanted = {"n": agg.count(estimate=True), "s": agg.sum("v", estimate=True), "m": agg.mean("v", estimate=True)}
    rows = app.source("rows", sources.generator(1))
    rows.key_by("k").aggregate("totals", **wanted).sink("out", sinks.memory())
    return StepHarness(app, "totals", {"k": int, "v": int}, kept=kept)


@pytest.mark.parametrize(("values", "enough"), [("different", ENOUGH), ("equal", ENOUGH_EQUAL)])
def test_bounds_are_null_until_enough_values_were_seen_and_all_else_is_there(values: str, enough: int) -> None:
    found = step(0.5)
    rows = [{"k": 1, "v": i if values == "different" else 7} for i in range(enough)]
    (few,) = found.epoch(rows[:-1])
    assert (few["n"], few["s"], few["s_accuracy"]) == (2 * enough - 2, 2 * sum(r["v"] for r in rows[:-1]), 0.5)
    assert few["m"] == pytest.approx(few["s"] / few["n"])
    assert few["n_low"] < few["n"] < few["n_high"], "a count always has bounds"
    assert [few[name] for name in ("s_low", "s_high", "m_low", "m_high")] == [None] * 4
    (many,) = found.epoch(rows[-1:])
    assert many["s_low"] < many["s"] < many["s_high"]
    assert many["m_low"] <= many["m"] <= many["m_high"]


def test_a_value_that_is_no_number_has_no_bounds() -> None:
    aggregate = EstimatedSum("v")
    values = pa.array([*map(float, range(ENOUGH)), float("inf")])
    found = aggregate.estimate(aggregate.weighted(values, len(values), np.array([0]), 0.5))
    assert (found.value.to_pylist(), found.low.to_pylist(), found.high.to_pylist()) == ([float("inf")], [None], [None])


def test_values_that_differ_by_less_than_rounding_are_not_taken_for_skewed() -> None:
    """Cubes of a billion leave no digit for the skew of what comes after the point."""
    random = np.random.default_rng(3)
    values = pa.array(1e9 + random.normal(size=100))
    aggregate = EstimatedMean("v")
    found = aggregate.estimate(aggregate.weighted(values, 100, np.array([0]), 0.5))
    low, value, high = (part.to_pylist()[0] for part in (found.low, found.value, found.high))
    assert value - low == pytest.approx(high - value, rel=1e-3, abs=1e-6)


def test_the_state_is_laid_out_as_ever_and_its_output_may_be_null() -> None:
    """A checkpoint of an earlier release goes on."""
    kinds = [str(kind) for kind in agg.sum("v", estimate=True).accumulator(pa.int64())]
    assert kinds == ["int64", "double", "double", "int64", "double", "int64", *["double"] * 4]
    assert [str(kind) for kind in agg.count(estimate=True).accumulator(None)] == ["int64", "double", "double"]
    assert all(field.nullable for field in result_fields("s", agg.sum("v", estimate=True), pa.int64()))
