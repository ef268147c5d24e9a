"""Aggregates with a condition: they give what they would give of those rows alone that it is true of."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import Farm, Row, multiset

from springtide import App, agg, sinks, sources
from springtide.conditions import evaluate
from springtide.conditions.errors import BadCondition
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate
from springtide.testing import StepHarness

KEY = pa.schema({"k": pa.int64()})
ROWS = pa.schema({"k": pa.int64(), "v": pa.int64(), "s": pa.string()})
CONDITIONS: dict[str, Callable[[Row], Any]] = {
    "v < 3": lambda row: row["v"] is not None and row["v"] < 3,
    "s = 'a' OR v IS NULL": lambda row: row["s"] == "a" or row["v"] is None,
    "NOT s = 'a'": lambda row: row["s"] is not None and row["s"] != "a",
    "k = 1": lambda row: row["k"] == 1,
    "TRUE": lambda row: True,
    "NULL": lambda row: False,
}
AGGREGATES: dict[str, tuple[Callable[[str], Aggregate], Callable[[list[Row]], Any]]] = {
    "rows": (lambda where: agg.count(where=where), len),
    "count": (lambda where: agg.count("v", where=where), lambda rows: len(present(rows))),
    "sum": (lambda where: agg.sum("v", where=where), lambda rows: sum(present(rows)) if present(rows) else None),
    "min": (lambda where: agg.min("v", where=where), lambda rows: min(present(rows), default=None)),
    "max": (lambda where: agg.max("v", where=where), lambda rows: max(present(rows), default=None)),
    "mean": (
        lambda where: agg.mean("v", where=where),
        lambda rows: sum(present(rows)) / len(present(rows)) if present(rows) else None,
    ),
    "top_k": (lambda where: agg.top_k("v", 2, where=where), lambda rows: sorted(present(rows))[::-1][:2]),
    "distinct": (lambda where: agg.distinct("v", where=where), lambda rows: len(set(present(rows)))),
    "about": (lambda where: agg.approx_distinct("v", where=where), lambda rows: len(set(present(rows)))),
    "half": (
        lambda where: agg.approx_quantile("v", 0.5, where=where),
        lambda rows: sorted(present(rows))[(len(present(rows)) - 1) // 2] if present(rows) else None,
    ),
    "all": (lambda where: agg.collect("v", where=where), lambda rows: sorted(present(rows))),
    "first": (lambda where: agg.first("k", by="v", where=where), lambda rows: rows[0]["k"] if present(rows) else None),
    "last": (lambda where: agg.last("v", by="v", where=where), lambda rows: max(present(rows), default=None)),
}


def present(rows: list[Row]) -> list[int]:
    return [row["v"] for row in rows if row["v"] is not None]


rows_of_an_epoch = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.integers(0, 3),
            "v": st.one_of(st.none(), st.integers(-1, 6)),
            "s": st.sampled_from([None, "a", "b"]),
        }
    ),
    max_size=7,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(rows_of_an_epoch, max_size=3), max_size=4),
    st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=len(AGGREGATES), max_size=len(AGGREGATES)),
    st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1),
)
def test_only_rows_that_the_condition_is_true_of_count(
    epochs: list[list[list[Row]]], conditions: list[str], owners: list[list[int]]
) -> None:
    """However rows are split into arrivals and epochs, and slices change hands."""
    chosen = dict(zip(AGGREGATES, conditions, strict=True))
    wanted = {name: make(chosen[name]) for name, (make, _) in AGGREGATES.items()} | {"any": agg.count()}
    farm = Farm(AggregateLogic(KEY, ROWS, wanted, 4), ROWS, slices=4)
    seen: dict[int, list[Row]] = {}
    for number, epoch in enumerate(epochs):
        farm.owner = owners[number % len(owners)]
        result = farm.epoch(*epoch)
        touched = {row["k"] for part in epoch for row in part}
        for row in (row for part in epoch for row in part):
            seen.setdefault(row["k"], []).append(row)
        assert multiset(result.output) == multiset(
            {"k": k, "any": len(seen[k])}
            | {name: of([r for r in seen[k] if CONDITIONS[chosen[name]](r)]) for name, (_, of) in AGGREGATES.items()}
            for k in touched
        )


@settings(max_examples=60, deadline=None)
@given(st.lists(rows_of_an_epoch, min_size=1, max_size=3), st.floats(0.2, 1.0), st.sampled_from(sorted(CONDITIONS)))
def test_estimates_are_those_of_a_column_with_nulls_in_the_other_rows(
    epochs: list[list[Row]], kept: float, where: str
) -> None:
    """Accuracy is about all rows, and so are both."""
    filtered = {
        "n": agg.count(where=where, estimate=True),
        "total": agg.sum("v", where=where, estimate=True),
        "usual": agg.mean("v", where=where, estimate=True),
    }
    nulled = {
        "n": agg.count("one", estimate=True),
        "total": agg.sum("w", estimate=True),
        "usual": agg.mean("w", estimate=True),
    }
    columns = {"k": int, "v": int, "s": str, "one": int, "w": int}
    ours, theirs = (harness(columns, kept=kept, **wanted) for wanted in (filtered, nulled))
    for epoch in epochs:
        rows = [
            {**row, "one": 1 if CONDITIONS[where](row) else None, "w": row["v"] if CONDITIONS[where](row) else None}
            for row in epoch
        ]
        assert repr(ours.epoch(rows)) == repr(theirs.epoch(rows))


def harness(columns: dict[str, Any], kept: float = 1.0, **aggregates: Aggregate) -> StepHarness:
    app = App("app", slices=8)
    app.source("rows", sources.generator(1)).key_by("k").aggregate("step", **aggregates).sink("out", sinks.noop())
    return StepHarness(app, "step", columns, kept=kept)


def test_windows_and_sessions_have_conditions_too() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [{"k": 1, "at": noon + timedelta(seconds=s), "v": s} for s in (1, 2, 3, 70)]
    wanted = {"late": agg.max("v", where="at > TIMESTAMP '2026-01-01 12:00:01'"), "n": agg.count(where="v % 2 = 1")}
    app = App("app", slices=8)
    keyed = app.source("rows", sources.generator(1)).key_by("k")
    keyed.window("at", "1 minute").aggregate("windows", **wanted).sink("a", sinks.noop())
    keyed.session("at", "30 seconds").aggregate("sessions", **wanted).sink("b", sinks.noop())
    for step in ("windows", "sessions"):
        found = StepHarness(app, step, {"k": int, "at": datetime, "v": int}).epoch(rows)
        assert sorted((row["late"], row["n"]) for row in found) == [(3, 2), (70, 0)]


def test_equal_conditions_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    compared = evaluate.FUNCTIONS["<"]

    def counted(*sides: Any) -> Any:
        asked.append(1)
        return compared(*sides)

    some = harness(
        {"k": int, "v": int},
        n=agg.count(where="v < 3"),
        total=agg.sum("v", where="v < 3"),
        different=agg.distinct("v", where="v < 3"),
        other=agg.count(where="v < 2"),
    )
    monkeypatch.setitem(evaluate.FUNCTIONS, "<", counted)  # type: ignore[arg-type]
    some.epoch([{"k": 1, "v": 2}])
    assert len(asked) == 2


def test_what_is_wrong_is_told_when_it_is_written_or_when_the_columns_are_known() -> None:
    with pytest.raises(BadCondition, match=r"agg\.sum where='v <': expected a condition"):
        agg.sum("v", where="v <")
    with pytest.raises(BadCondition, match=r"agg\.count where='w < 1': expected columns among \['k', 'v'\], got 'w'"):
        harness({"k": int, "v": int}, n=agg.count(where="w < 1"))


def test_a_checkpoint_knows_the_condition() -> None:
    texts = {repr(agg.count(where=where)) for where in ("v < 1", "v<1", "v < 2")}
    assert len(texts) == 2, "what it means, and not how it is spaced"
    assert not any("0x" in text for text in texts)


def test_an_aggregate_that_knows_nothing_of_conditions_stands_beside_some_that_have_one() -> None:
    class Last:
        """The greatest number, as a package of somebody else's might have it."""

        column = "v"

        def accumulator(self, kind: Any) -> list[Any]:
            return [pa.int64()]

        def result(self, kind: Any) -> Any:
            return pa.int64()

        def partial(self, values: Any, rows: int, starts: Any) -> list[Any]:
            return self.combine([values], starts)

        def combine(self, parts: list[Any], starts: Any) -> list[Any]:
            return [pa.array(np.maximum.reduceat(parts[0].fill_null(-99).to_numpy(zero_copy_only=False), starts))]

        def finish(self, parts: list[Any]) -> Any:
            return parts[0]

    some = harness({"k": int, "v": int}, most=Last(), few=agg.max("v", where="v < 5"))
    assert some.epoch([{"k": 1, "v": 9}, {"k": 1, "v": 4}]) == [{"k": 1, "most": 9, "few": 4}]
