"""Estimates by sketches: exact for few values, within the stated error for many, however rows are split."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasketches import kll_doubles_sketch
from hypothesis import given, settings
from hypothesis import strategies as st
from ordered_kit import KINDS
from state_kit import Farm, Row, canon, multiset

from springtide import App, agg, sinks, sources
from springtide.errors import BadValue
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate, UnsupportedColumn
from springtide.state.aggregates.approx_distinct import FEW, ApproxDistinct
from springtide.state.aggregates.sketches import CountingSketch
from springtide.state.wide import wide_type
from springtide.testing import StepHarness

KEY = pa.schema({"k": pa.int64()})
SHARES = (0.0, 0.07, 0.25, 0.5, 0.99, 1.0)
TRIALS = 300


def quantile(numbers: list[float], share: float) -> float:
    """By the definition: go up until at least this share is not exceeded."""
    ordered = sorted(numbers)
    enough = (n for i, n in enumerate(ordered, 1) if i / len(ordered) >= share - 1e-12)
    return next(enough)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_few_values_are_exact_however_they_come(data: st.DataObject) -> None:
    """Split into arrivals and epochs, with slices that change hands; nulls, NaN and equal values among them."""
    numbers = st.one_of(st.none(), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0]), st.floats(-9, 9))
    row = st.fixed_dictionaries({"k": st.integers(0, 2), "v": numbers})
    epochs = data.draw(st.lists(st.lists(st.lists(row, max_size=20), max_size=3), max_size=4))
    rows = pa.schema([("k", pa.int64()), ("v", pa.float64())])
    wanted = {
        "different": agg.approx_distinct("v"),
        "median": agg.approx_quantile("v", 0.5),
        "several": agg.approx_quantile("v", SHARES),
        "positive": agg.approx_quantile("v", 1, where="v > 0 AND v < 9"),
    }
    farm, seen = Farm(AggregateLogic(KEY, rows, wanted, 4), rows, slices=4), dict[int, list[Any]]()
    for epoch in epochs:
        farm.owner = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
        result = farm.epoch(*epoch)
        for each in (each for part in epoch for each in part):
            seen.setdefault(each["k"], []).append(each["v"])
        assert multiset(result.output) == multiset(
            few(key, seen[key]) for key in {each["k"] for part in epoch for each in part}
        )


def few(key: int, values: list[float | None]) -> Row:
    present = [v for v in values if v is not None]
    counted = [v for v in present if not math.isnan(v)]
    return {
        "k": key,
        "different": len({canon(v) for v in present}),
        "median": quantile(counted, 0.5) if counted else None,
        "several": [quantile(counted, share) for share in SHARES] if counted else None,
        "positive": max((v for v in counted if 0 < v < 9), default=None),
    }


def split(rows: int, random: np.random.Generator) -> list[np.ndarray]:
    """Row numbers in any order, in parts of any size."""
    cuts = np.sort(random.integers(0, rows + 1, random.integers(0, 6)))
    return np.split(random.permutation(rows), cuts)


def summarised(aggregate: Aggregate, values: pa.Array, parts: list[np.ndarray]) -> list[pa.Array]:
    """The accumulators of one key, whose parts are combined one after the other."""
    whole, start = aggregate.partial(values.take(pa.array(parts[0])), len(parts[0]), np.zeros(1, np.int64)), [0]
    for part in parts[1:]:
        if len(part):
            fresh = aggregate.partial(values.take(pa.array(part)), len(part), np.zeros(1, np.int64))
            both = [pa.concat_arrays(pair) for pair in zip(whole, fresh, strict=True)]
            whole = aggregate.combine(both, np.array(start))
    return whole


def filled(parts: list[np.ndarray]) -> list[np.ndarray]:
    return [part for part in parts if len(part)]


@pytest.mark.parametrize("many", [FEW, FEW + 1, 500, 20_000])
@pytest.mark.parametrize("kind", ["n", "f", "s", "raw", "at", "money"])
def test_a_count_depends_on_the_values_alone(kind: str, many: int) -> None:
    """And on no order, and on no way to split them; each value is there once or twice."""
    random = np.random.default_rng(many)
    values = pa.array(made(kind, many), KINDS[kind][0])
    twice = pa.concat_arrays([values, values.slice(0, many // 2)])
    aggregate = agg.approx_distinct("v")
    found = set()
    for _ in range(4):
        parts = summarised(aggregate, twice, filled(split(len(twice), random)))
        found |= set(aggregate.finish(parts).to_pylist())
    (count,) = found
    assert count == many if many <= FEW else abs(count / many - 1) < 4 * 0.02


@pytest.mark.parametrize("kind", ["n", "f", "s", "raw", "at", "money"])
def test_a_sketch_gets_another_thing_for_each_value(kind: str) -> None:
    values = pa.array(made(kind, 500), wide_type(KINDS[kind][0]))
    given = ApproxDistinct("v", CountingSketch(11)).readable(values)
    assert len(set(given)) == 500
    assert "" not in given, "the library passes over it"


def made(kind: str, many: int) -> list[Any]:
    """So many different values of a type, some of them the ones that are easily mistaken for nothing."""
    numbers = range(-(many // 2), many - many // 2)
    match kind:
        case "s":
            return ["", "\0", "0", *map(str, range(1, many - 2))]
        case "raw":
            return [b"", b"\0", b"\xff", *(n.to_bytes(3, "big") for n in range(many - 3))]
        case "f":
            return [math.nan, math.inf, *(n / 3 for n in numbers)][:many]
        case "money":
            return [Decimal(n).scaleb(-2) for n in numbers]
        case _:
            return list(numbers)


@pytest.mark.parametrize("error", [0.1, 0.02, 0.01])
def test_counts_have_the_standard_error_that_is_stated(error: float) -> None:
    """The values are given, and the sketch draws no lots: this is the same at every run."""
    aggregate, many, rest = agg.approx_distinct("v", error=error), 3000, []
    for trial in range(TRIALS):
        values = pa.array(np.arange(many) + trial * many)
        parts = aggregate.partial(values, many, np.array([0]))
        rest.append(aggregate.finish(parts)[0].as_py() / many - 1)
    spread = float(np.sqrt(np.mean(np.square(rest))))
    assert 0.4 * error < spread < 1.1 * error, "nor is the sketch larger than it has to be"
    assert abs(np.mean(rest)) < error / 4
    assert np.mean(np.abs(rest) < 2 * error) > 0.93


@pytest.mark.parametrize("error", [0.05, 0.01])
def test_quantiles_have_the_rank_error_that_is_stated(error: float) -> None:
    """KLL draws lots. That more than 5 % of 300 trials are beyond a bound for 99 %, happens once in 10^7 runs."""
    aggregate, many, random = agg.approx_quantile("v", SHARES, error=error), 5000, np.random.default_rng(5)
    values, beyond = pa.array(np.arange(1.0, many + 1)), np.zeros(len(SHARES))
    for _ in range(TRIALS):
        parts = summarised(aggregate, values, filled(split(many, random)))
        (found,) = aggregate.finish(parts).to_pylist()
        beyond += np.abs(np.array(found) / many - SHARES) > error
        assert (found[0], found[-1]) == (1, many), "the least and the greatest are exact"
        assert np.all(np.abs(np.array(found) / many - SHARES) < 3 * error)
    assert np.all(beyond <= 0.05 * TRIALS)


@pytest.mark.parametrize("many", [1, 269, 270, 2000])
def test_no_number_is_lost_or_counted_twice(many: int) -> None:
    aggregate, random = agg.approx_quantile("v", 0.5), np.random.default_rng(many)
    values = pa.array(random.normal(size=many))
    for _ in range(20):
        numbers, sketch = summarised(aggregate, values, filled(split(many, random)))
        kept = numbers.to_pylist()[0]
        assert len(kept) + (kll_doubles_sketch.deserialize(sketch[0].as_py()).n if sketch[0].is_valid else 0) == many
        assert sketch[0].is_valid == (many > 269)


def test_keys_with_few_and_with_many_values_stand_side_by_side() -> None:
    rows = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    wanted = {
        "n": agg.approx_distinct("v"),
        "ends": agg.approx_quantile("v", [0, 1]),
        "most": agg.approx_quantile("v", 1),
    }
    farm = Farm(AggregateLogic(KEY, rows, wanted, 8), rows)
    many = {1: 3, 2: 900, 3: 0, 4: 65, 5: 1500, 6: 64}
    for _ in range(2):
        parts: list[list[Row]] = [[{"k": k, "v": v} for k, n in many.items() for v in range(i, n, 2)] for i in (0, 1)]
        found = {row["k"]: row for row in farm.epoch(*parts, [{"k": 3, "v": None}]).output}
    for key, n in many.items():
        assert found[key]["n"] == pytest.approx(n, rel=0.06, abs=0)
        assert found[key]["ends"] == ([0, n - 1] if n else None)
        assert found[key]["most"] == (n - 1 if n else None)
    stored = {row["k"]: row for row in farm.stored()}
    assert (stored[5]["n.0"], stored[5]["ends.0"]) == ([], [])
    assert len(stored[5]["n.1"]) < 1300
    assert (len(stored[6]["n.0"]), stored[6]["n.1"]) == (FEW, None)
    assert stored[4]["n.0"] == [], "64 are few, and 65 are many"


def test_a_share_is_not_missed_by_a_rounding_error() -> None:
    """0.07 times 100 is more than 7 in floating point."""
    aggregate = agg.approx_quantile("v", [n / 100 for n in range(1, 101)])
    parts = aggregate.partial(pa.array(np.arange(100.0, 0.0, -1.0)), 100, np.array([0]))
    assert aggregate.finish(parts).to_pylist() == [list(range(1, 101))]


def test_decimals_and_small_integers_become_doubles() -> None:
    money = [Decimal("876523692.30"), Decimal("-3.50"), None, Decimal("0.07"), Decimal("9999999999999.99")]
    for kind, values in ((pa.decimal128(15, 2), money), (pa.int8(), [3, -1, 2])):
        aggregate = agg.approx_quantile("v", (0.25, 0.5, 0.75, 1))
        (found,) = aggregate.finish(aggregate.partial(pa.array(values, kind), len(values), np.array([0]))).to_pylist()
        assert set(found) == {float(v) for v in values if v is not None}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: agg.approx_distinct("v", error=0), "approx_distinct error=0: expected a share"),
        (lambda: agg.approx_distinct("v", error=0.3), "expected a share from 0.0005 to 0.2"),
        (lambda: agg.approx_quantile("v", 0.5, error=math.nan), "approx_quantile error=nan: expected a share"),
        (lambda: agg.approx_quantile("v", 50), "column 'v': expected a share from 0 to 1, or several, got q=.50,"),
        (lambda: agg.approx_quantile("v", None), r"expected a share from 0 to 1, or several, got q=.None,"),  # type: ignore[arg-type]
        (lambda: agg.approx_quantile("v", ()), "expected a share from 0 to 1, or several"),
        (lambda: agg.approx_quantile("v", (0.5, -1)), "expected a share from 0 to 1, or several"),
        (lambda: agg.approx_quantile("v", "0.5"), "expected a share from 0 to 1, or several"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(make: Any, told: str) -> None:
    with pytest.raises(BadValue, match=told):
        make()


def test_types_that_do_not_fit_are_refused() -> None:
    def harness(kind: Any, aggregate: Aggregate) -> None:
        app = App("app", slices=8)
        app.source("rows", sources.generator(1)).key_by("k").aggregate("step", n=aggregate).sink("out", sinks.noop())
        StepHarness(app, "step", {"k": int, "v": kind})

    with pytest.raises(UnsupportedColumn, match=r"approx_distinct of column 'v': expected numbers, .* got list"):
        harness(pa.list_(pa.int64()), agg.approx_distinct("v"))
    with pytest.raises(UnsupportedColumn, match=r"approx_quantile of column 'v': expected integers, .* got string"):
        harness(str, agg.approx_quantile("v", 0.5))
