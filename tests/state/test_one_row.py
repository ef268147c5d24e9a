"""The first and the last value of each key, and all of its values, against plain Python."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordered_kit import KINDS, NOON, ROWS, compare
from state_kit import Farm, Row, canon, multiset

from springtide import App, agg, sinks, sources
from springtide.errors import BadValue
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import UnsupportedColumn
from springtide.testing import StepHarness

KEY = pa.schema({"k": pa.int64()})


def one(rows: list[Row], column: str, by: Sequence[str], *, smallest: bool) -> Any:
    """Go through all rows and keep the best so far."""
    names = [name.removeprefix("-") for name in by]
    signs = [1 if name.startswith("-") != smallest else -1 for name in by]

    def better(left: Row, right: Row) -> int:
        in_by = (s * compare(left[n], right[n]) for s, n in zip(signs, names, strict=True))
        return next((c for c in in_by if c), -compare(left[column], right[column]))

    counted = [row for row in rows if all(row[n] is not None for n in names)]
    return min(counted, key=cmp_to_key(better))[column] if counted else None


def collected(rows: list[Row], column: str, *, distinct: bool) -> list[Any]:
    present = sorted((row[column] for row in rows if row[column] is not None), key=cmp_to_key(compare))
    return list({canon(v): v for v in present}.values()) if distinct else present


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_results_are_the_same_however_rows_come(data: st.DataObject) -> None:
    """Split into arrivals and epochs, with slices that change hands; nulls and equal rows among them."""
    used = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    by = [data.draw(st.sampled_from(["", "-"])) + name for name in used[: data.draw(st.integers(1, len(used)))]]
    column = data.draw(st.sampled_from(used))
    values = {name: st.one_of(st.none(), st.sampled_from(KINDS[name][1])) for name in used}
    row = st.fixed_dictionaries({"k": st.integers(0, 2)} | values)
    epochs = data.draw(st.lists(st.lists(st.lists(row, max_size=7), max_size=3), max_size=4))
    wanted = {
        "first": agg.first(column, by=tuple(by)),
        "last": agg.last(column, by=tuple(by)),
        "all": agg.collect(column),
        "each": agg.collect(column, distinct=True),
    }
    schema = pa.schema([ROWS.field(name) for name in ("k", *used)])
    farm = Farm(AggregateLogic(KEY, schema, wanted, 4), schema, slices=4)
    seen: dict[int, list[Row]] = {}
    for epoch in epochs:
        farm.owner = data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4))
        result = farm.epoch(*epoch)
        for each in (each for part in epoch for each in part):
            seen.setdefault(each["k"], []).append(each)
        assert multiset(result.output) == multiset(
            {
                "k": key,
                "first": one(seen[key], column, by, smallest=True),
                "last": one(seen[key], column, by, smallest=False),
                "all": collected(seen[key], column, distinct=False),
                "each": collected(seen[key], column, distinct=True),
            }
            for key in {each["k"] for part in epoch for each in part}
        )


def harness(columns: dict[str, Any], **aggregates: Any) -> StepHarness:
    app = App("app", slices=8)
    app.source("rows", sources.generator(1)).key_by("k").aggregate("step", **aggregates).sink("out", sinks.noop())
    return StepHarness(app, "step", columns)


def test_only_rows_that_a_condition_is_true_of_count() -> None:
    where = "v < 9"
    some = harness(
        {"k": int, "at": int, "v": int},
        opened=agg.first("v", by="at", where=where),
        closed=agg.last("v", by="at", where=where),
        seen=agg.collect("v", where=where),
    )
    (found,) = some.epoch([{"k": 1, "at": at, "v": v} for at, v in enumerate((9, 4, 3, 4, 9))])
    assert found == {"k": 1, "opened": 4, "closed": 4, "seen": [3, 4, 4]}
    (found,) = some.epoch([{"k": 2, "at": 1, "v": 9}])
    assert found == {"k": 2, "opened": None, "closed": None, "seen": []}


def test_a_state_keeps_one_row() -> None:
    some = harness({"k": int, "at": int, "v": str}, closed=agg.last("v", by="at"))
    for at in range(5):
        some.epoch([{"k": 1, "at": at, "v": f"{at}{copy}"} for copy in range(3)])
    (stored,) = some.state()
    assert stored["closed.0"] == [{"at": 4, "v": "42"}]


def test_windows_and_sessions_have_a_first_and_a_last() -> None:
    app = App("app", slices=8)
    keyed = app.source("rows", sources.generator(1)).key_by("k").session("at", "10 seconds", late="1 minute")
    wanted = {"opened": agg.first("v", by="at"), "closed": agg.last("v", by="at"), "all": agg.collect("v")}
    keyed.aggregate("step", **wanted).sink("out", sinks.noop())
    some = StepHarness(app, "step", {"k": int, "at": datetime, "v": int})

    def epoch(*rows: tuple[int, int]) -> list[tuple[int, int, list[int]]]:
        found = some.epoch([{"k": 1, "at": NOON + timedelta(seconds=at), "v": v} for at, v in rows])
        return [(row["opened"], row["closed"], row["all"]) for row in found]

    assert epoch((1, 7), (0, 9), (15, 2)) == [(9, 7, [7, 9]), (2, 2, [2])]
    assert epoch((8, 5)) == [(9, 2, [2, 5, 7, 9])], "two sessions became one"


@pytest.mark.parametrize("make", [agg.first, agg.last])
def test_what_cannot_be_meant_is_refused(make: Any) -> None:
    name = make.__name__
    for by in ((), "-", ("at", "-at")):
        with pytest.raises(BadValue, match=f"{name} by="):
            make("v", by=by)
    with pytest.raises(TypeError, match="by"):
        make("v")
    with pytest.raises(BadValue, match=r"found= an aggregate of a column among \['k', 'v'\], got 'at'"):
        harness({"k": int, "v": int}, found=make("v", by="at"))
    with pytest.raises(UnsupportedColumn, match=rf"{name} of column 'w': expected a type with an order .*, got list"):
        harness({"k": int, "w": pa.list_(pa.int64())}, found=make("w", by="k"))
    with pytest.raises(UnsupportedColumn, match=r"collect of column 'w': expected a type with an order .*, got list"):
        harness({"k": int, "w": pa.list_(pa.int64())}, found=agg.collect("w"))
