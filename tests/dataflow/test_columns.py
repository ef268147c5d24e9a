"""Columns that keyed steps can't do with are told before there are rows, by the harness as by the engine."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from springtide import App, Ttl, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.errors import BadType, BadValue
from springtide.state.aggregates import UnsupportedColumn
from springtide.testing import StepHarness

ROWS: dict[str, Any] = {"k": str, "at": datetime, "v": int}


def joined(left: dict[str, Any], right: dict[str, Any], key: str = "k", **options: Any) -> StepHarness:
    app = App("app", slices=8)
    ours, theirs = (app.source(name, sources.generator(1)) for name in ("left", "right"))
    ours.key_by(key).join("step", theirs.key_by("k"), **options).sink("out", sinks.memory())
    return StepHarness(app, "step", [left, right])


def single(step: Any, columns: dict[str, Any] = ROWS) -> StepHarness:
    app = App("app", slices=8)
    step(app.source("rows", sources.generator(1)).key_by("k")).sink("out", sinks.memory())
    return StepHarness(app, "step", columns)


@pytest.mark.parametrize(
    ("left", "right", "key", "told"),
    [
        (ROWS, ROWS, "q", r"key columns among \['k', 'at', 'v'\], got \['q'\]"),
        (ROWS, {"v": int}, "k", r"key columns among \['v'\], got \['k'\]"),
        (ROWS, {"k": int}, "k", "keys of one type: cast one of them by a transform .* 'k' string and 'k' int64"),
        ({"k": str, "__side": str}, ROWS, "__side", r"no key named '__side'.* got \['__side'\]"),
        (ROWS, {"k": str, "__row": int}, "k", r"no column named '__row'.* got \['__row'\]"),
    ],
)
def test_sides_whose_keys_do_not_fit(left: dict[str, Any], right: dict[str, Any], key: str, told: str) -> None:
    with pytest.raises(BadGraph, match=told) as refused:
        joined(left, right, key)
    assert refused.value.step == "step"


def test_a_key_is_there_and_has_an_equality() -> None:
    counting = {"ttl": "1 hour", "n": agg.count()}
    with pytest.raises(BadGraph, match=r"'step': expected key columns among \['at'\], got \['k'\]"):
        single(lambda keyed: keyed.aggregate("step", **counting), {"at": datetime})
    with pytest.raises(BadType, match=r"column 'k' has type .* and can't be a key"):
        single(lambda keyed: keyed.aggregate("step", **counting), {"k": pa.list_(pa.int64())})


@pytest.mark.parametrize("cut", ["count_window", "session"])
def test_what_is_aggregated_is_there_and_of_a_type_that_fits(cut: str) -> None:
    def step(aggregate: Any) -> Any:
        def steps(keyed: Any) -> Any:
            windows = keyed.count_window(2) if cut == "count_window" else keyed.session("at", "1 minute")
            return windows.aggregate("step", n=aggregate)

        return steps

    with pytest.raises(BadGraph, match=r"'step': expected n= an aggregate of a column among .*, got 'w'"):
        single(step(agg.sum("w")))
    with pytest.raises(UnsupportedColumn, match="mean of column 'k': expected integers"):
        single(step(agg.mean("k")))


def test_columns_named_like_those_that_the_state_has_besides() -> None:
    span = {"time": ("at", "at"), "within": ("0 seconds", "1 minute")}
    with pytest.raises(BadGraph, match=r"'step': expected other names for .*, got \['\$matched'\]"):
        joined({"k": str, "at": datetime, "$matched": int}, ROWS, how="left", **span)
    ttl = Ttl("1 hour", time="at")
    with pytest.raises(BadValue, match=r"no column named '\$newest_us' with ttl="):
        single(lambda keyed: keyed.dedupe("step", ttl=ttl), {**ROWS, "$newest_us": int})
