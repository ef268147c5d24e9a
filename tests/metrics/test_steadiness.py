"""When an output is steady again: by hand, and against a search that tries every moment."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.metrics.migration.flow import Flow, Lump, usual_spread_s
from springtide.metrics.migration.steadiness import Steadiness, calm_rate, steady_from

CALM: list[Lump] = [(float(t), 10.0) for t in range(-30, 1)]


def flowing(first: int, last: int, rows: float = 10.0) -> list[Lump]:
    return [(float(t), rows) for t in range(first, last + 1)]


def test_an_output_that_goes_on_is_steady_from_the_beginning() -> None:
    assert steady_from([*CALM, *flowing(1, 60)], Steadiness()) == 0.0


def test_a_window_has_to_be_covered_to_its_end() -> None:
    assert steady_from([*CALM, *flowing(1, 59)], Steadiness()) is None
    assert steady_from([], Steadiness(expected_rows_per_s=1.0)) is None


def test_after_a_stop_it_is_steady_once_averages_miss_a_fifth_of_their_time_at_most() -> None:
    """Nothing from 0 to 29 s; an average that begins at 27 s has two seconds without."""
    assert steady_from([*CALM, *flowing(30, 120)], Steadiness()) == pytest.approx(27.0, abs=0.51)


def test_rows_that_all_come_after_a_stop_do_not_hide_it() -> None:
    """One lump has what 30 s would have had, so that the mean is right all the time."""
    found = steady_from([*CALM, (30.0, 300.0), *flowing(31, 120)], Steadiness())
    assert found == pytest.approx(30.0, abs=0.6)


def test_making_up_for_a_stop_is_not_steady_either() -> None:
    """After 20 s, twice the rate for 20 s."""
    found = steady_from([*CALM, *flowing(21, 40, 20.0), *flowing(41, 120)], Steadiness())
    assert found == pytest.approx(38.0, abs=0.51)


def test_a_rate_that_settles_elsewhere_is_not_what_was_expected() -> None:
    outputs = [*CALM, *flowing(1, 120, 13.0)]
    assert steady_from(outputs, Steadiness()) is None
    assert steady_from(outputs, Steadiness(tolerance=0.3)) == 0.0
    assert steady_from(outputs, Steadiness(expected_rows_per_s=13.0)) == 0.0


def test_a_disturbance_that_comes_late_counts_if_it_was_not_over() -> None:
    """Workers take 70 s to come, and only then does anything move."""
    outputs = [*CALM, *flowing(1, 70), *flowing(85, 200)]
    assert steady_from(outputs, Steadiness(), over_at=30.0) == 0.0
    assert steady_from(outputs, Steadiness(), over_at=75.0) == pytest.approx(82.0, abs=0.51)


def test_a_disturbance_that_nobody_has_seen_the_end_of_is_not_over() -> None:
    outputs = [*CALM, *flowing(1, 70)]
    assert steady_from(outputs, Steadiness(), over_at=60.0) == 0.0
    assert steady_from(outputs, Steadiness(), over_at=60.5) is None


def test_what_to_expect_is_the_mean_of_the_calm() -> None:
    assert calm_rate([(-90.0, 999.0), (-10.0, 50.0), (-8.0, 6.0), (-5.0, 9.0), (3.0, 99.0)], 60.0) == 3.0
    assert calm_rate([(-5.0, 9.0), (1.0, 9.0)], 60.0) is None, "since when its rows came is not known"
    assert calm_rate([(-5.0, 9.0), (-1.0, 0.0)], 60.0) is None, "nothing is near to nothing"
    assert calm_rate([], 60.0) is None
    assert steady_from([(1.0, 5.0), *flowing(2, 99)], Steadiness()) is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"window_s": 0.0}, "window_s"),
        ({"smooth_s": -1.0}, "smooth_s"),
        ({"smooth_s": 61.0}, "smooth_s"),
        ({"calm_s": float("nan")}, "calm_s"),
        ({"tolerance": 1.0}, "tolerance"),
        ({"expected_rows_per_s": 0.0}, "expected_rows_per_s"),
    ],
)
def test_what_can_not_be_meant_is_refused(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected .* got"):
        Steadiness(**wrong)


# Flows.


def test_lumps_that_come_as_usual_are_a_steady_flow() -> None:
    flow = Flow.of([(1.0, 10.0), (2.0, 10.0), (4.0, 20.0)], spread_s=2.0)
    assert [flow.by(t) for t in (-2.0, -1.0, 0.0, 1.0, 1.5, 3.0, 4.0, 9.0)] == [0, 0, 5, 10, 15, 30, 40, 40]
    assert flow.rate(4.0, 2.0) == 10.0


def test_before_a_late_lump_nothing_flows() -> None:
    flow = Flow.of([(1.0, 10.0), (9.0, 80.0)], spread_s=2.0)
    assert [flow.by(t) for t in (1.0, 4.0, 7.0, 8.0)] == [10, 10, 10, 50]


def test_lumps_of_the_same_time_are_one_and_nothing_is_no_flow() -> None:
    flow = Flow.of([(1.0, 1.0), (1.0, 2.0), (0.0, 3.0)], 5.0)
    assert (flow.by(0.0), flow.by(1.0)) == (3.0, 6.0), "in whatever order they are told"
    assert Flow.of([(5.0, 4.0)], 0.0).rate(5.0, 2.0) == 2.0
    assert Flow.of([], 1.0).rate(5.0, 2.0) == 0.0


def test_what_is_usual_is_told_by_the_calm_if_it_can() -> None:
    assert usual_spread_s([-4.0, -2.0, 0.0, 7.0, 14.0, 21.0], 0.0) == 3.0
    assert usual_spread_s([-4.0, 4.0, 6.0], -1.0) == 7.5
    assert usual_spread_s([1.0], 0.0) > 0


def near_at(outputs: Sequence[Lump], expected: float, spread_s: float, smooth_s: int) -> dict[float, bool]:
    """By the end of an average, each quarter of a second: is it near? Rows are added up by quarters."""
    quarters = round(outputs[-1][0] * 4)
    passed = [0.0] * (quarters + 1)
    before = -math.inf
    for at, rows in outputs:
        first = max(at - spread_s, before)
        for q in range(max(0, math.floor(first * 4)), math.ceil(at * 4) + 1):
            overlap = min(at, q / 4) - max(first, q / 4 - 0.25)
            if overlap > 0:
                passed[q] += rows * overlap / (at - first)
        before = at
    rates = {q / 4: sum(passed[q - smooth_s * 4 + 1 : q + 1]) / smooth_s for q in range(smooth_s * 4, quarters + 1)}
    return {at: abs(rate - expected) <= 0.2 * expected + 1e-6 for at, rate in rates.items()}


@settings(max_examples=100, deadline=None)
@given(
    gaps=st.lists(st.sampled_from([1, 1, 1, 1, 2, 5]), min_size=20, max_size=60),
    rows=st.lists(st.sampled_from([10, 10, 10, 11, 9, 25]), min_size=60, max_size=60),
)
def test_the_window_is_steady_and_none_that_starts_earlier_is(gaps: list[int], rows: list[int]) -> None:
    """Rows come each second as usual, so the spread is 1.5 s, and averages bend at half seconds only.

    Looking at quarters therefore misses nothing within a window. It may miss a start: two disturbances can be apart by
    hardly more than a window. So starts are not compared; what is claimed of the one that was found is.
    """
    outputs, at = list(CALM), 0
    for gap, count in zip(gaps, rows, strict=False):
        at += gap
        outputs.append((float(at), float(count * gap if count < 25 else count)))
    outputs += flowing(at + 1, at + 40)
    found = steady_from(outputs, Steadiness(window_s=20.0, smooth_s=4.0))
    assert found is not None
    near = near_at(outputs, 10.0, 1.5, 4)
    assert all(good for end, good in near.items() if found + 4 <= end <= found + 20)
    earlier = [q / 4 for q in range(math.ceil((found - 1e-6) * 4))]
    assert not [s for s in earlier if all(good for end, good in near.items() if s + 4 <= end <= s + 20)]
