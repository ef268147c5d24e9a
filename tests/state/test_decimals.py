"""Sums and means of decimals are exact, and of Spark's types, against Python's decimals."""

from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from state_kit import Farm, Row, multiset

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate, UnsupportedColumn
from springtide.state.aggregates.base import Overflowed
from springtide.state.aggregates.division import divided
from springtide.state.errors import NumericOverflow

KEY = pa.schema({"k": pa.int64()})
MOST = Decimal(10**38 - 1)
TYPES = {
    (12, 2): ((22, 2), (16, 6)),
    (5, 0): ((15, 0), (9, 4)),
    (1, 1): ((11, 1), (5, 5)),
    (30, 10): ((38, 10), (34, 14)),
    (36, 36): ((38, 36), (38, 38)),
    (38, 0): ((38, 0), (38, 4)),
    (38, 18): ((38, 18), (38, 22)),
    (38, 38): ((38, 38), (38, 38)),
}
"""By precision and scale of a column: those of its sum and of its mean, as Spark has them."""


def exact(total: int, count: int, scale: int, places: int) -> Decimal:
    """A whole number of the last places of a column over a count, rounded half up."""
    with localcontext(prec=200):
        mean = Decimal(total).scaleb(-scale) / count
        return mean.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def expected(key: int, values: list[Decimal], kind: tuple[int, int]) -> Row | None:
    """The row of a key; None if its sum or mean does not fit."""
    (precision, scale), mean = TYPES[kind]
    if not values:
        return {"k": key, "sum": None, "mean": None}
    with localcontext(prec=200):
        total = sum(int(value.scaleb(scale)) for value in values)
        usual = exact(total, len(values), scale, mean[1])
        if abs(total) >= 10**precision or abs(usual) >= Decimal(10) ** (mean[0] - mean[1]):
            return None
        return {"k": key, "sum": Decimal(total).scaleb(-scale), "mean": usual}


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    numbers = st.one_of(st.integers(-9, 9), st.integers(-most, most), st.sampled_from([most, -most]))
    with localcontext(prec=200):
        return numbers.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_sums_and_means_are_exact_however_rows_come(kind: tuple[int, int], data: st.DataObject) -> None:
    rows = pa.schema([("k", pa.int64()), ("v", pa.decimal128(*kind))])
    row = st.fixed_dictionaries({"k": st.integers(0, 2), "v": st.one_of(st.none(), decimals(*kind))})
    epochs = data.draw(st.lists(st.lists(st.lists(row, max_size=6), max_size=3), max_size=4))
    logic = AggregateLogic(KEY, rows, {"sum": agg.sum("v"), "mean": agg.mean("v")}, 4)
    assert logic.output.types[1:] == [pa.decimal128(*wanted) for wanted in TYPES[kind]]
    farm, seen = Farm(logic, rows, slices=4), dict[int, list[Decimal]]()
    for epoch in epochs:
        arrived = dict[int, list[Decimal]]()
        for each in (each for part in epoch for each in part):
            arrived.setdefault(each["k"], []).extend([] if each["v"] is None else [each["v"]])
        for key, values in arrived.items():
            seen.setdefault(key, []).extend(values)
        wanted = [expected(key, seen[key], kind) for key in arrived]
        try:
            found = farm.epoch(*epoch).output
        except NumericOverflow:
            # A part of a sum may be beyond the limit, and the sum would have come back.
            assume(kind[0] < 38)
            raise
        assert None not in wanted
        assert multiset(found) == multiset(wanted)


def farm(aggregate: Aggregate, kind: pa.DataType) -> Farm:
    rows = pa.schema([("k", pa.int64()), ("v", kind)])
    return Farm(AggregateLogic(KEY, rows, {"total": aggregate}, 8), rows)


def test_a_sum_beyond_38_digits_names_the_key() -> None:
    some = farm(agg.sum("v"), pa.decimal128(38, 0))
    (found,) = some.epoch([{"k": 1, "v": Decimal(10**38 - 2)}]).output
    assert found["total"] == Decimal(10**38 - 2)
    (found,) = some.epoch([{"k": 1, "v": Decimal(1)}]).output
    assert found["total"] == MOST
    with pytest.raises(NumericOverflow, match=r"'total' of column 'v': .* fits DECIMAL\(38, 0\), .* key .*DOUBLE") as e:
        some.epoch([{"k": 0, "v": Decimal(1)}, {"k": 1, "v": Decimal(1)}])
    assert e.value.key == '{"k": 1}'


@pytest.mark.parametrize("times", [2, 4, 7, 1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_does_not_come_back_from_the_other_side(times: int, sign: int) -> None:
    """Four times the largest number, cut off at 128 bits, would have 38 digits again."""
    with pytest.raises(NumericOverflow):
        farm(agg.sum("v"), pa.decimal128(38, 0)).epoch([{"k": 1, "v": MOST.copy_sign(sign)}] * times)


def test_a_mean_is_right_where_the_sum_is_beyond_38_digits() -> None:
    nearly = Decimal("0." + "9" * 38)
    (found,) = farm(agg.mean("v"), pa.decimal128(38, 38)).epoch([{"k": 1, "v": nearly}] * 3).output
    assert found["total"] == nearly


@pytest.mark.parametrize(
    ("total", "mean"), [(13, "0.4063"), (5, "0.1563"), (3, "0.0938"), (1, "0.0313"), (16, "0.5000")]
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_middle_is_rounded_away_from_zero(sign: str, total: int, mean: str) -> None:
    """Thirty-seconds have five places, and the last one is a 5."""
    values = [Decimal(f"{sign}{total}")] + [Decimal(0)] * 31
    (found,) = farm(agg.mean("v"), pa.decimal128(5, 0)).epoch([{"k": 1, "v": v} for v in values]).output
    assert str(found["total"]) == sign + mean


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_division_is_exact_and_rounded_half_up(data: st.DataObject) -> None:
    """By numbers of up to 56 bits, at the edges too of where other steps are taken."""
    most, scale = 2 ** data.draw(st.sampled_from([6, 32, 33, 48, 49, 56])), data.draw(st.sampled_from([0, 38]))
    number = st.one_of(st.none(), st.integers(-(10**52) + 1, 10**52 - 1))
    by = st.one_of(st.integers(1, most), st.integers(most - 2, most))
    pairs = data.draw(st.lists(st.tuples(number, by), min_size=1, max_size=9))
    signed = [None if n is None else Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n, _ in pairs]
    wanted = [None if n is None else exact(n, by, scale, scale) for n, by in pairs]
    skipped = data.draw(st.integers(0, 2))
    values = pa.array(signed, pa.decimal256(52, scale)).slice(skipped)
    assert divided(values, np.array([by for _, by in pairs[skipped:]], np.uint64)).to_pylist() == wanted[skipped:]


def test_what_does_not_fit_is_told_by_its_group() -> None:
    values = pa.array([Decimal(1), MOST, MOST], pa.decimal128(38, 0))
    with pytest.raises(Overflowed) as caught:
        agg.sum("v").combine([values], np.array([0, 1]))
    assert caught.value.group == 1


@pytest.mark.parametrize("make", [agg.sum, agg.mean])
def test_estimates_of_decimals_are_refused(make: Any) -> None:
    with pytest.raises(UnsupportedColumn, match=r"estimate=True of column 'v': .* to DOUBLE, got"):
        farm(make("v", estimate=True), pa.decimal128(12, 2))
    with pytest.raises(UnsupportedColumn, match=r"of column 'v': expected integers, .* or decimals, got decimal256"):
        farm(make("v"), pa.decimal256(12, 2))


@pytest.mark.parametrize("kind", [(12, 2), (38, 0), (38, 38)])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_other_aggregates_take_decimals(kind: tuple[int, int], data: st.DataObject) -> None:
    rows = pa.schema([("k", pa.int64()), ("v", pa.decimal128(*kind))])
    wanted = {"least": agg.min("v"), "most": agg.max("v"), "top": agg.top_k("v", 2), "n": agg.distinct("v")}
    some, seen = Farm(AggregateLogic(KEY, rows, wanted, 8), rows), []
    for values in data.draw(st.lists(st.lists(decimals(*kind), min_size=1, max_size=5), min_size=1, max_size=3)):
        seen += values
        (found,) = some.epoch([{"k": 1, "v": v} for v in values]).output
        best = sorted(seen)[::-1][:2]
        assert found == {"k": 1, "least": min(seen), "most": max(seen), "top": best, "n": len(set(seen))}
