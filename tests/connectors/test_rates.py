"""Rate profiles: how many rows are due by when, and the exact inverse."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.connectors.generator import rates
from springtide.connectors.generator.rates import Rate, constant, sine, step

unhurried = settings(deadline=None)
per_s = st.floats(0.01, 1e6)
constants = st.builds(constant, per_s)


@st.composite
def steps(draw: st.DrawFn) -> Rate:
    lengths_s = draw(st.lists(st.floats(0.1, 1e4), max_size=5))
    starts_s = np.cumsum([0.0, *lengths_s]).tolist()
    levels = [draw(st.one_of(st.just(0.0), per_s)) for _ in lengths_s] + [draw(per_s)]
    return step(zip(starts_s, levels, strict=True))


@st.composite
def sines(draw: st.DrawFn) -> Rate:
    mean = draw(per_s)
    return sine(mean, mean * draw(st.floats(0, 1)), draw(st.floats(0.1, 1e5)))


any_rate = st.one_of(constants, steps(), sines())
row_number = st.integers(0, 10**9)


@unhurried
@given(any_rate, row_number)
def test_a_row_counts_from_the_moment_it_is_due_and_not_before(rate: Rate, row: int) -> None:
    due_s = float(rate.due_at(np.array([row]))[0])
    assert rate.due_rows(due_s) >= row + 1
    assert rate.due_rows(math.nextafter(due_s, -math.inf)) <= row


@unhurried
@given(any_rate, st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_is_due_only_grows(rate: Rate, one_s: float, other_s: float) -> None:
    earlier_s, later_s = sorted([one_s, other_s])
    assert 0 <= rate.due_rows(earlier_s) <= rate.due_rows(later_s)


@unhurried
@given(any_rate, row_number)
def test_rows_are_due_in_order(rate: Rate, first: int) -> None:
    assert (np.diff(rate.due_at(np.arange(first, first + 200))) >= 0).all()


@unhurried
@given(any_rate, row_number, st.integers(1, 300))
def test_a_rows_time_does_not_depend_on_its_neighbours(rate: Rate, first: int, rows: int) -> None:
    together = rate.due_at(np.arange(first, first + rows))
    alone = [rate.due_at(np.array([row]))[0] for row in (first, first + rows // 2, first + rows - 1)]
    assert alone == [together[0], together[rows // 2], together[-1]]


@unhurried
@given(any_rate)
def test_nothing_is_due_before_the_start(rate: Rate) -> None:
    assert rate.due_rows(-1.0) == rate.due_rows(0.0) == 0


@unhurried
@given(any_rate)
def test_json_gives_the_same_profile_back(rate: Rate) -> None:
    assert rates.from_json(json.loads(json.dumps(rate.to_json()))) == rate


def test_constant_counts_rows_per_second() -> None:
    assert [constant(100).due_rows(s) for s in (0.5, 1.0, 60.0)] == [50, 100, 6000]


def test_step_changes_the_rate_at_its_seconds() -> None:
    rate = step([(0, 100), (60, 400), (120, 100)])
    assert [rate.due_rows(s) for s in (60, 61, 120, 121)] == [6000, 6400, 30_000, 30_100]
    assert rate.due_at(np.array([5999, 6399, 30_099])).tolist() == [60.0, 61.0, 121.0]


def test_a_pause_holds_rows_back_until_it_ends() -> None:
    rate = step([(0, 10), (1, 0), (5, 10)])
    assert [rate.due_rows(s) for s in (1.0, 4.9, 5.0, 5.1)] == [10, 10, 10, 11]


def test_a_profile_that_ends_in_silence_never_owes_more() -> None:
    rate = step([(0, 10), (2, 0)])
    assert rate.due_rows(1e9) == 20
    assert rate.due_at(np.array([19, 20])).tolist() == [2.0, math.inf]


@pytest.mark.parametrize("swing", [0.0, 0.5, 1.0])
def test_sine_keeps_its_mean_over_whole_periods(swing: float) -> None:
    rate = sine(1000, 1000 * swing, 60)
    assert abs(rate.due_rows(600) - 600_000) <= 1


def test_sine_follows_the_integral_of_its_rate() -> None:
    # The exact cumulative: mean * t + amplitude * (1 - cos(2 pi t / P)) * P / (2 pi).
    rate, second = sine(1000, 800, 60), 15.0
    assert abs(rate.due_rows(second) - (1000 * second + 800 * 60 / (2 * math.pi))) <= 1


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: constant(0), "rows_per_s > 0, got 0"),
        (lambda: constant(math.inf), "finite rows_per_s"),
        (lambda: step([]), "starts at second 0"),
        (lambda: step([(1, 10)]), "starts at second 0"),
        (lambda: step([(0, 10), (5, 20), (5, 30)]), "must be finite and rise"),
        (lambda: step([(0, -1)]), "not all 0"),
        (lambda: step([(0, 0), (5, 0)]), "not all 0"),
        (lambda: sine(0, 0, 60), "mean > 0"),
        (lambda: sine(10, 11, 60), "amplitude of 0..10, got 11"),
        (lambda: sine(10, 5, 0), "period_s > 0"),
        (lambda: rates.from_json({"kind": "square"}), "got 'square'"),
        (lambda: rates.from_json({"kind": "constant", "rate": 1}), "fields of a constant rate"),
    ],
)
def test_a_bad_profile_is_refused_where_it_is_built(build: Callable[[], Rate], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        build()
