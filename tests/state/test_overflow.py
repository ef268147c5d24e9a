"""Sums of integers are exact or an error that names the key: they never wrap."""

import pickle
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import Farm

from springtide.errors import SpringtideError
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import Aggregate, functions
from springtide.state.aggregates.adding import add_segments
from springtide.state.aggregates.base import Overflowed
from springtide.state.aggregates.count import Count
from springtide.state.aggregates.spread import ENOUGH
from springtide.state.errors import NumericOverflow
from springtide.state.logic import Moment

LEAST, MOST = -(2**63), 2**63 - 1
ROWS = pa.schema([("k", pa.string()), ("v", pa.int64())])
huge = st.one_of(
    st.integers(LEAST, MOST), st.sampled_from([LEAST, LEAST + 1, -(2**62), -1, 0, 1, 2**62, MOST - 1, MOST])
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), huge), min_size=1, max_size=6), min_size=1, max_size=6))
def test_sums_are_those_of_whole_numbers_or_the_first_key_that_does_not_fit_is_told(
    groups: list[list[int | None]],
) -> None:
    values = pa.array([v for group in groups for v in group], pa.int64())
    starts = np.cumsum([0, *map(len, groups)])[:-1].astype(np.int64)
    truth = [sum(v for v in group if v is not None) if any(v is not None for v in group) else None for group in groups]
    beyond = [i for i, total in enumerate(truth) if total is not None and not LEAST <= total <= MOST]
    if not beyond:
        assert add_segments(values, starts).to_pylist() == truth
        return
    with pytest.raises(Overflowed) as caught:
        add_segments(values, starts)
    assert caught.value.group == beyond[0]


def test_a_sum_may_pass_the_limit_on_its_way_and_come_back() -> None:
    values = pa.array([MOST, MOST, LEAST, LEAST, 2], pa.int64())
    assert add_segments(values, np.array([0])).to_pylist() == [0]


def test_floats_are_added_as_ever() -> None:
    values = pa.array([1e308, 1e308, 0.5, None], pa.float64())
    assert add_segments(values, np.array([0, 2, 3])).to_pylist() == [float("inf"), 0.5, None]


def farm(aggregate: Aggregate, rows: pa.Schema = ROWS) -> Farm:
    return Farm(AggregateLogic(pa.schema([rows.field("k")]), rows, {"total": aggregate}, 8), rows)


def row(key: Any, value: int) -> dict[str, Any]:
    return {"k": key, "v": value}


class TestEpochs:
    def check(self, error: NumericOverflow, key: str) -> None:
        assert isinstance(error, SpringtideError)
        assert (error.result, error.column, error.key) == ("total", "column 'v'", key)
        text = str(error)
        assert key in text
        assert "fits 64 bits" in text
        assert "DOUBLE" in text
        assert "\n" not in text
        copy = pickle.loads(pickle.dumps(error))
        assert (str(copy), vars(copy)) == (text, vars(error)), "a worker can send it to the driver"

    def test_within_rows_that_are_read_together(self) -> None:
        with pytest.raises(NumericOverflow) as caught:
            farm(functions.sum("v")).epoch([row("fine", 1), row("bad", MOST), row("bad", 1)])
        self.check(caught.value, '{"k": "bad"}')

    def test_among_rows_of_several_partitions(self) -> None:
        with pytest.raises(NumericOverflow) as caught:
            farm(functions.sum("v")).epoch([row("fine", 1), row("bad", LEAST)], [row("bad", -1)])
        self.check(caught.value, '{"k": "bad"}')

    def test_with_what_was_known(self) -> None:
        some = farm(functions.sum("v"))
        some.epoch([row("fine", 1), row("bad", MOST - 1), row("new", MOST)])
        (kept,) = [r for r in some.epoch([row("bad", 1)]).output if r["k"] == "bad"]
        assert kept["total"] == MOST, "the largest number fits"
        with pytest.raises(NumericOverflow) as caught:
            some.epoch([row("fine", 1), row("bad", 1)])
        self.check(caught.value, '{"k": "bad"}')

    def test_small_integers_are_added_as_large_ones(self) -> None:
        small = pa.schema([("k", pa.string()), ("v", pa.int8())])
        (found,) = farm(functions.sum("v"), small).epoch([row("a", 127)] * 3).output
        assert found["total"] == 381

    def test_a_key_is_told_on_one_line_and_not_at_any_length(self) -> None:
        with pytest.raises(NumericOverflow) as caught:
            farm(functions.sum("v")).epoch([row("x\ny" * 10_000, MOST), row("x\ny" * 10_000, 1)])
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500

    def test_a_key_of_any_time_is_told(self) -> None:
        rows = pa.schema([("k", pa.timestamp("us")), ("v", pa.int64())])
        when = datetime(2026, 1, 2, 3, 4, 5)
        with pytest.raises(NumericOverflow) as caught:
            farm(functions.sum("v"), rows).epoch([row(when, MOST), row(when, 1)])
        assert "2026-01-02 03:04:05" in caught.value.key

    def test_an_estimated_sum(self) -> None:
        some = farm(functions.sum("v", estimate=True))
        (found,) = some.epoch([row("a", MOST)]).output
        assert [found[n] for n in ("total", "total_low", "total_high")] == [MOST] * 3
        with pytest.raises(NumericOverflow):
            some.epoch([row("a", 1)])

    def test_a_count(self) -> None:
        count = Count()
        with pytest.raises(Overflowed):
            count.combine([pa.array([MOST, 1], pa.int64())], np.array([0]))


def test_an_estimate_that_does_not_fit_is_an_error_and_a_bound_ends_at_the_limit() -> None:
    logic = AggregateLogic(pa.schema([ROWS.field("k")]), ROWS, {"total": functions.sum("v", estimate=True)}, 8)

    def estimated(value: int, kept: float) -> dict[str, Any]:
        values = [value, *[0] * ENOUGH]  # A sum of fewer values has no bounds.
        rows = pa.table({"v": pa.array(values, pa.int64())})
        keys = [pa.array(["a"] * len(values))]
        arrival = logic.arrive(np.ones(len(values), np.uint64), keys, rows, Moment(kept=kept))
        names = logic.layout.state.names
        state = {n: arrival.rows.column(f"v.{n}").combine_chunks() for n in names}
        (found,) = logic._output(pa.table({"k": ["a"]}), state, final=False).to_pylist()
        return dict(found)

    found = estimated(2**61, 0.5)
    assert found["total"] == 2**62
    assert found["total_high"] == MOST
    with pytest.raises(NumericOverflow):
        estimated(2**61, 0.1)
