"""Every aggregate against a plain Python oracle, with rows split at random into arrivals and epochs."""

import math
import statistics
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Farm, Row, canon, frozen, multiset

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate, UnsupportedColumn
from springtide.state.wide import wide_type

NAN = float("nan")
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

dyadic = st.integers(-400, 400).map(lambda n: n / 8)
"""Floating-point numbers whose sums are exact, so that the order of addition does not show."""

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.one_of(st.integers(-9, 9), st.sampled_from([2**40, -(2**40)]))),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint16": (pa.uint16(), st.integers(0, 65535)),
    "double": (pa.float64(), st.one_of(dyadic, st.sampled_from([NAN, -0.0, math.inf, -math.inf]))),
    "float": (pa.float32(), st.one_of(dyadic, st.sampled_from([NAN, -0.0, math.inf]))),
    "string": (pa.string(), st.sampled_from(["", "a", "aa", "b", "B", "ä", "日本", "🌊", "a\x00"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"\x00", b"a", b"\xff", b"\xff\x00"])),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        st.integers(-(10**15), 10**15).map(lambda us: BEGINNING + timedelta(microseconds=us)),
    ),
    "date": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "decimal": (pa.decimal128(12, 2), st.integers(-999, 999).map(lambda n: Decimal(n) / 100)),
}
NUMBERS = ["int64", "int8", "uint16", "double", "float"]


def compare(a: Any, b: Any) -> int:
    """The order of values: NaN is greater than any number."""
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def ordered(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(compare))


def oracle_sum(values: list[Any]) -> Any:
    return sum(values) if values else None


def oracle_mean(values: list[Any]) -> Any:
    return sum(map(float, values)) / len(values) if values else None


def oracle_median(values: list[Any]) -> Any:
    counted = sorted(float(v) for v in values if v == v)
    return counted[(len(counted) - 1) // 2] if counted else None


AGGREGATES: dict[str, tuple[Callable[[str], Aggregate], Callable[[list[Any]], Any], list[str]]] = {
    "count": (agg.count, len, sorted(VALUES)),
    "sum": (agg.sum, oracle_sum, [*NUMBERS, "decimal"]),
    "mean": (agg.mean, oracle_mean, NUMBERS),
    "min": (agg.min, lambda values: ordered(values)[0] if values else None, sorted(VALUES)),
    "max": (agg.max, lambda values: ordered(values)[-1] if values else None, sorted(VALUES)),
    "top_1": (lambda column: agg.top_k(column, 1), lambda values: ordered(values)[::-1][:1], sorted(VALUES)),
    "top_3": (lambda column: agg.top_k(column, 3), lambda values: ordered(values)[::-1][:3], sorted(VALUES)),
    "distinct": (agg.distinct, lambda values: len({canon(v) for v in values}), sorted(VALUES)),
    "approx_distinct": (agg.approx_distinct, lambda values: len({canon(v) for v in values}), sorted(VALUES)),
    "median": (lambda column: agg.approx_quantile(column, 0.5), oracle_median, NUMBERS),
    "collect": (agg.collect, ordered, sorted(VALUES)),
}
"""By name: the aggregate, its oracle over the non-null values, and the column types it takes."""


def fitting(kind: str) -> dict[str, Aggregate]:
    return {name: make("v") for name, (make, _, kinds) in AGGREGATES.items() if kind in kinds}


@pytest.mark.parametrize("kind", sorted(VALUES))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_epochs_and_arrivals_add_up_to_what_a_batch_gives(kind: str, data: st.DataObject) -> None:
    """Associative and commutative: however the rows are split, the last output is the batch's."""
    arrow, values = VALUES[kind]
    row = st.tuples(st.integers(0, 3), st.one_of(st.none(), values))
    epochs = data.draw(st.lists(st.lists(st.lists(row, max_size=6), max_size=3), max_size=4))
    key, rows = pa.schema([("k", pa.int64())]), pa.schema([("k", pa.int64()), ("v", arrow)])
    wanted = fitting(kind) | {"rows": agg.count()}
    farm = Farm(AggregateLogic(key, rows, wanted, 2), rows, data.draw(st.sampled_from(list(HASHES.values()))), 2)
    seen: dict[int, list[Any]] = {}
    for epoch in epochs:
        result = farm.epoch(*([{"k": k, "v": v} for k, v in part] for part in epoch))
        touched = {k for part in epoch for k, _ in part}
        for k, v in (pair for part in epoch for pair in part):
            seen.setdefault(k, []).append(v)
        assert multiset(result.output) == multiset(expected(k, seen[k], wanted) for k in touched)


def expected(key: int, values: list[Any], wanted: dict[str, Aggregate]) -> Row:
    present = [v for v in values if v is not None]
    return {"k": key} | {n: len(values) if n == "rows" else AGGREGATES[n][1](present) for n in wanted}


@pytest.mark.parametrize("kind", sorted(VALUES))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_accumulators_combine_in_any_grouping(kind: str, data: st.DataObject) -> None:
    """combine(combine(a, b), c) is combine(a, combine(b, c)) is combine(a, b, c), for several keys at once."""
    arrow, values = VALUES[kind]
    keys = data.draw(st.integers(1, 3))
    parts = [data.draw(st.lists(st.one_of(st.none(), values), min_size=keys, max_size=keys)) for _ in range(3)]
    one_each = np.arange(keys)
    for aggregate in fitting(kind).values():
        a, b, c = (aggregate.partial(pa.array(part, wide_type(arrow)), keys, one_each) for part in parts)
        left = joined(aggregate, [joined(aggregate, [a, b], keys), c], keys)
        right = joined(aggregate, [a, joined(aggregate, [b, c], keys)], keys)
        flat = joined(aggregate, [a, b, c], keys)
        turned = joined(aggregate, [c, a, b], keys)
        results = [aggregate.finish(x).to_pylist() for x in (left, right, flat, turned)]
        assert all(frozen(r) == frozen(results[0]) for r in results)
        kinds = [wide_type(kind) for kind in aggregate.accumulator(arrow)]
        assert all([part.type for part in x] == kinds for x in (a, left, flat))
        assert aggregate.finish(flat).type == wide_type(aggregate.result(arrow))


def joined(aggregate: Aggregate, accumulators: list[list[pa.Array]], keys: int) -> list[pa.Array]:
    """Accumulators of several arrivals, merged key by key."""
    interleave = pa.array(np.arange(len(accumulators) * keys).reshape(len(accumulators), keys).T.ravel())
    columns = [pa.concat_arrays(list(parts)).take(interleave) for parts in zip(*accumulators, strict=True)]
    return aggregate.combine(columns, np.arange(keys) * len(accumulators))


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_a_key_with_nothing_but_nulls(kind: str) -> None:
    for name, aggregate in fitting(kind).items():
        nothing = aggregate.partial(pa.nulls(3, VALUES[kind][0]), 3, np.array([0, 2]))
        assert aggregate.finish(nothing).to_pylist() == [AGGREGATES[name][1]([])] * 2


def test_nan_is_the_greatest_number_for_every_aggregate() -> None:
    values, starts = pa.array([1.0, NAN, None, NAN, None, 2.0]), np.array([0, 3, 5])

    def run(aggregate: Aggregate) -> str:
        return repr(aggregate.finish(aggregate.partial(values, 6, starts)).to_pylist())

    assert run(agg.max("v")) == "[nan, nan, 2.0]"
    assert run(agg.min("v")) == "[1.0, nan, 2.0]"
    assert run(agg.top_k("v", 1)) == "[[nan], [nan], [2.0]]"
    assert run(agg.distinct("v")) == "[2, 1, 1]"
    assert run(agg.sum("v")) == "[nan, nan, 2.0]"


def test_zero_and_nan_are_one_value_each_whatever_their_bits() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    different = agg.distinct("v")
    values = pa.array([0.0, NAN, -0.0, other_nan])
    together = different.partial(values, 4, np.array([0]))
    apart = different.partial(values, 4, np.arange(4))
    assert different.finish(together).to_pylist() == [2]
    assert different.finish(different.combine(apart, np.array([0]))).to_pylist() == [2]


def test_integers_add_up_exactly_where_doubles_would_not() -> None:
    total = agg.sum("v")
    parts = [total.partial(pa.array([v]), 1, np.array([0]))[0] for v in (2**60, 1, -(2**60))]
    assert total.combine([pa.concat_arrays(parts)], np.array([0]))[0].to_pylist() == [1]


def test_count_of_rows_counts_nulls_and_count_of_a_column_does_not() -> None:
    values = pa.array([None, 1, None])
    assert agg.count().partial(None, 3, np.array([0, 2]))[0].to_pylist() == [2, 1]
    assert agg.count("v").partial(values, 3, np.array([0, 2]))[0].to_pylist() == [1, 0]


def test_top_k_keeps_equal_values_and_never_more_than_k() -> None:
    top = agg.top_k("v", 2)
    part = top.partial(pa.array([5, 5, 5, 1]), 4, np.array([0, 3]))
    assert part[0].to_pylist() == [[5, 5], [1]]
    assert top.combine([pa.concat_arrays([part[0], part[0]])], np.array([0]))[0].to_pylist() == [[5, 5]]


@pytest.mark.parametrize(
    ("aggregate", "kind"),
    [
        (agg.sum("v"), pa.string()),
        (agg.sum("v"), pa.bool_()),
        (agg.mean("v"), pa.timestamp("us")),
        (agg.min("v"), pa.list_(pa.int64())),
        (agg.max("v"), pa.bool_()),
        (agg.top_k("v", 1), pa.struct([("a", pa.int64())])),
        (agg.distinct("v"), pa.map_(pa.string(), pa.int64())),
        (agg.distinct("v"), pa.null()),
        (agg.approx_distinct("v"), pa.null()),
        (agg.sum("v"), None),
    ],
)
def test_a_type_an_aggregate_cannot_summarise_is_refused_by_name(
    aggregate: Aggregate, kind: pa.DataType | None
) -> None:
    with pytest.raises(UnsupportedColumn, match=r"of column 'v': expected .*, got"):
        aggregate.accumulator(kind)
    with pytest.raises(UnsupportedColumn):
        aggregate.result(kind)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_top_k_wants_a_positive_k(k: Any) -> None:
    with pytest.raises(ValueError, match=r"top_k of column 'v': k must be at least 1"):
        agg.top_k("v", k)


def test_aggregates_keep_apart_what_they_store() -> None:
    """Names with dots and names that are prefixes of others do not mix up accumulators."""
    key, rows = pa.schema([("k", pa.int64())]), pa.schema([("k", pa.int64()), ("v", pa.int64())])
    wanted = {"a": agg.mean("v"), "a.0": agg.sum("v"), "a.0.0": agg.count(), "mean": agg.max("v")}
    farm = Farm(AggregateLogic(key, rows, wanted, 2), rows, slices=2)
    farm.epoch([{"k": 1, "v": 2}, {"k": 1, "v": 4}])
    (row,) = farm.epoch([{"k": 1, "v": 9}]).output
    assert row == {"k": 1, "a": 5.0, "a.0": 15, "a.0.0": 3, "mean": 9}


def test_a_key_column_can_be_aggregated_too() -> None:
    key, rows = pa.schema([("k", pa.int64())]), pa.schema([("k", pa.int64())])
    farm = Farm(AggregateLogic(key, rows, {"total": agg.sum("k")}, 2), rows, slices=2)
    assert farm.epoch([{"k": 3}, {"k": 3}]).output == [{"k": 3, "total": 6}]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=8), max_size=5),
    st.sampled_from([0.0, 1e9]),
)
def test_variance_is_that_of_all_values_however_they_come(epochs: list[list[float | None]], far: float) -> None:
    """Also of values that are large and close to each other, where sums of squares would lose all digits."""
    rows = pa.schema([("k", pa.string()), ("v", pa.float64())])
    wanted = {"variance": agg.variance("v"), "stddev": agg.stddev("v")}
    farm = Farm(AggregateLogic(pa.schema([("k", pa.string())]), rows, wanted, 8), rows)
    last: Row | None = None
    for values in epochs:
        shifted = [None if v is None else v + far for v in values]
        halves = shifted[::2], shifted[1::2]
        for row in farm.epoch(*([{"k": "a", "v": v} for v in half] for half in halves)).output:
            last = row
    all_ = [v + far for values in epochs for v in values if v is not None]
    if last is None or len(all_) < 2:
        assert last is None or (last["variance"], last["stddev"]) == (None, None)
        return
    expected = statistics.variance(all_)
    assert last["variance"] == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert last["stddev"] == pytest.approx(math.sqrt(expected), rel=1e-6, abs=1e-1)
