"""The first rows of each key against sorting all of them in plain Python."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordered_kit import KINDS, NOON, ROWS, compare
from state_kit import Farm, Row, multiset

from springtide import App, agg, sinks, sources
from springtide.errors import BadValue
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import UnsupportedColumn
from springtide.testing import StepHarness

KEY = pa.schema({"k": pa.int64()})


def best(rows: list[Row], k: int, by: Sequence[str], columns: Sequence[str], ties: bool) -> list[Row]:
    """Sort everything, then cut."""
    names = [one.removeprefix("-") for one in by]
    signs = [1 if one.startswith("-") else -1 for one in by]
    finer = [*names, *(name for name in columns if name not in names)]

    def in_by(left: Row, right: Row) -> int:
        return next((c for s, n in zip(signs, names, strict=True) if (c := s * compare(left[n], right[n]))), 0)

    def whole(left: Row, right: Row) -> int:
        return in_by(left, right) or next((c for n in finer if (c := -compare(left[n], right[n]))), 0)

    counted = sorted((r for r in rows if all(r[n] is not None for n in names)), key=cmp_to_key(whole))
    kept = counted[:k]
    if ties and len(kept) == k:
        kept = [row for row in counted if in_by(row, kept[-1]) <= 0]
    return [{name: row[name] for name in columns} for row in kept]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_best_rows_are_the_same_however_they_come(data: st.DataObject) -> None:
    """Split into arrivals and epochs, with slices that change hands; nulls and equal rows among them."""
    used = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    by = [data.draw(st.sampled_from(["", "-"])) + name for name in used[: data.draw(st.integers(1, len(used)))]]
    columns = data.draw(st.lists(st.sampled_from([*used, "k"]), min_size=1, unique=True))
    k, ties = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    values = {name: st.one_of(st.none(), st.sampled_from(KINDS[name][1])) for name in used}
    row = st.fixed_dictionaries({"k": st.integers(0, 2)} | values)
    epochs = data.draw(st.lists(st.lists(st.lists(row, max_size=7), max_size=3), max_size=4))
    wanted = {"best": agg.top_rows(k, by=tuple(by), columns=columns, ties=ties), "n": agg.count()}
    schema = pa.schema([ROWS.field(name) for name in ("k", *used)])
    farm = Farm(AggregateLogic(KEY, schema, wanted, 4), schema, slices=4)
    seen: dict[int, list[Row]] = {}
    for epoch in epochs:
        farm.owner = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
        result = farm.epoch(*epoch)
        for one in (one for part in epoch for one in part):
            seen.setdefault(one["k"], []).append(one)
        assert multiset(result.output) == multiset(
            {"k": key, "best": best(seen[key], k, by, columns, ties), "n": len(seen[key])}
            for key in {one["k"] for part in epoch for one in part}
        )


def harness(columns: dict[str, Any], **aggregates: Any) -> StepHarness:
    app = App("app", slices=8)
    app.source("rows", sources.generator(1)).key_by("k").aggregate("step", **aggregates).sink("out", sinks.noop())
    return StepHarness(app, "step", columns)


def test_rows_that_tie_stay_all_of_them_until_a_better_one_comes() -> None:
    some = harness({"k": int, "v": int, "who": str}, best=agg.top_rows(1, by="v", columns="who", ties=True))

    def epoch(*rows: tuple[int, str]) -> list[str]:
        (found,) = some.epoch([{"k": 1, "v": v, "who": who} for v, who in rows])
        return [row["who"] for row in found["best"]]

    assert epoch((3, "ann"), (2, "bob")) == ["ann"]
    assert epoch((3, "cyd"), (3, "ann")) == ["cyd", "ann", "ann"]
    assert epoch((2, "eve")) == ["cyd", "ann", "ann"]
    assert epoch((4, "bob")) == ["bob"]


def test_the_best_rows_of_those_that_a_condition_is_true_of() -> None:
    wanted = agg.top_rows(2, by=("v", "-who"), columns=("who", "v"), where="v < 9 AND who <> 'eve'")
    some = harness({"k": int, "v": int, "who": str}, best=wanted)
    rows = [(9, "ann"), (3, "bob"), (3, "ann"), (8, "eve"), (1, "cyd")]
    (found,) = some.epoch([{"k": 1, "v": v, "who": who} for v, who in rows])
    assert found["best"] == [{"who": "ann", "v": 3}, {"who": "bob", "v": 3}]


def test_a_state_keeps_no_more_rows_than_are_wanted() -> None:
    some = harness({"k": int, "v": int}, best=agg.top_rows(2, by="v", columns="v"))
    for start in range(0, 100, 10):
        some.epoch([{"k": 1, "v": v % 37} for v in range(start, start + 10)])
    (stored,) = some.state()
    assert stored["best.0"] == [{"v": 36}, {"v": 36}]


def test_sessions_that_become_one_have_the_best_rows_of_both() -> None:
    app = App("app", slices=8)
    keyed = app.source("rows", sources.generator(1)).key_by("k").session("at", "10 seconds", late="1 minute")
    keyed.aggregate("step", best=agg.top_rows(2, by="v", columns=("v", "s"))).sink("out", sinks.noop())
    some = StepHarness(app, "step", {"k": int, "at": datetime, "v": int, "s": str})

    def best(*rows: tuple[int, int]) -> list[list[int]]:
        found = some.epoch([{"k": 1, "at": NOON + timedelta(seconds=at), "v": v, "s": "x" * v} for at, v in rows])
        return [[row["v"] for row in one["best"]] for one in found]

    assert best((0, 3), (1, 1), (15, 2)) == [[3, 1], [2]]
    assert best((8, 0)) == [[3, 2]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"k": 0, "by": "v", "columns": "v"}, "k must be at least 1"),
        ({"k": 1, "by": (), "columns": "v"}, "a column name such as 'price' or '-price'"),
        ({"k": 1, "by": "-", "columns": "v"}, "a column name such as"),
        ({"k": 1, "by": ("v", "-v"), "columns": "v"}, "each column once"),
        ({"k": 1, "by": "v", "columns": ()}, "the names of one or more columns"),
        ({"k": 1, "by": "v", "columns": ("v", "v")}, "each once"),
        ({"k": 1, "by": "v", "columns": 5}, "the names of one or more columns"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadValue, match=told):
        agg.top_rows(options.pop("k"), **options)


def test_columns_that_are_not_there_or_have_no_order_are_refused() -> None:
    with pytest.raises(BadValue, match=r"best= an aggregate of a column among \['k', 'v'\], got 'w'"):
        harness({"k": int, "v": int}, best=agg.top_rows(1, by="v", columns="w"))
    with pytest.raises(UnsupportedColumn, match=r"top_rows of column 'w': expected a type with an order .*, got list"):
        harness({"k": int, "w": pa.list_(pa.int64())}, best=agg.top_rows(1, by="k", columns="w"))
