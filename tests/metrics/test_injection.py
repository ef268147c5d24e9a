"""The injection rate: lag and consumption together tell how fast rows came in, whoever takes them and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.metrics.load.injection import RISE_S, SURE_ROWS, InjectionRate, Sample, between


def sample(at_s: float, consumed: list[int], ends: list[int]) -> Sample:
    lag = {p: end - taken for p, (taken, end) in enumerate(zip(consumed, ends, strict=True))}
    return Sample(at_s, dict(enumerate(consumed)), lag)


def test_growing_lag_and_consumption_add_up() -> None:
    rate = between(sample(10.0, [100, 0], [150, 40]), sample(12.0, [160, 0], [250, 50]))
    assert rate.by_partition == {0: 50.0, 1: 5.0}
    assert rate.rows_per_s == 55.0


def test_a_shrinking_lag_is_not_taken_for_a_smaller_rate() -> None:
    """A backlog is worked off: ten times as much is taken as comes in."""
    rate = between(sample(0.0, [0], [1000]), sample(1.0, [1100], [1110]))
    assert rate.rows_per_s == 110.0


def test_a_partition_that_is_new_counts_from_nothing() -> None:
    rate = between(sample(0.0, [10], [10]), sample(2.0, [20, 0], [20, 8]))
    assert rate.by_partition == {0: 5.0, 1: 4.0}


def test_a_topic_made_anew_gives_no_negative_rate() -> None:
    assert between(sample(0.0, [500], [500]), sample(1.0, [0], [3])).rows_per_s == 0.0


def test_samples_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order of their time"):
        between(sample(1.0, [0], [0]), sample(1.0, [0], [5]))


def test_the_window_slides() -> None:
    """The rate of the last seconds only: an old one is forgotten."""
    estimator = InjectionRate(window_s=5.0)
    assert estimator.estimate() is None
    end = 0
    for second in range(20):
        estimator.add(sample(float(second), [0], [end]))
        end += 100 if second < 10 else 300
    rate = estimator.estimate()
    assert rate is not None
    assert (rate.from_s, rate.until_s) == (14.0, 19.0)
    assert rate.rows_per_s == 300.0


def test_a_sample_that_is_no_later_is_left_out() -> None:
    estimator = InjectionRate()
    for at_s, end in ((0.0, 0), (1.0, 10), (1.0, 99), (0.5, 99)):
        estimator.add(sample(at_s, [0], [end]))
    rate = estimator.estimate()
    assert rate is not None
    assert rate.rows_per_s == 10.0


@given(st.lists(st.tuples(st.floats(0.01, 3.0), st.integers(0, 5000), st.floats(0.0, 1.0)), min_size=2, max_size=60))
def test_whatever_is_taken_when_the_estimate_is_what_came_in(steps: list[tuple[float, int, float]]) -> None:
    """An oracle with a list of all times: rows that came in during the window, over its length."""
    estimator, now, end, taken, log = InjectionRate(window_s=4.0), 0.0, 0, 0, []
    for seconds, more, share in steps:
        now, end = now + seconds, end + more
        taken += int((end - taken) * share)
        log.append((now, end))
        estimator.add(sample(now, [taken // 2, taken - taken // 2], [end // 2, end - end // 2]))
    rate = estimator.estimate()
    assert rate is not None
    before = next(came for at_s, came in log if at_s == rate.from_s)
    assert rate.rows_per_s == pytest.approx((end - before) / (now - rate.from_s))
    assert rate.until_s == now
    rises = rate.until_s - rate.from_s >= RISE_S and end - before >= SURE_ROWS
    assert rate.until_s - rate.from_s >= 4.0 or rate.from_s == log[0][0] or rises


def estimates(rows: list[int], every_s: float = 0.5) -> list[float]:
    """After each sample, given the rows that came in since the one before it."""
    estimator, end, found = InjectionRate(window_s=5.0), 0, []
    for number, more in enumerate(rows):
        end += more
        estimator.add(sample(number * every_s, [0], [end]))
        rate = estimator.estimate()
        found.append(0.0 if rate is None else rate.rows_per_s)
    return found


def test_a_step_is_told_as_soon_as_it_is_sure() -> None:
    found = estimates([50] * 12 + [160] * 12)
    assert found[11] == 100.0
    assert found[14] == 320.0, "after three samples, where the window would tell of 166"
    assert found[-1] == 320.0


def test_a_fall_takes_the_window_as_one_may_wait_with_it() -> None:
    found = estimates([160] * 12 + [50] * 12)
    assert 100.0 < found[14] < 320.0
    assert found[-1] == 100.0


@pytest.mark.parametrize("pattern", [[0, 0, 0, 200], [70, 70, 0], [100, 90, 110], [0, 130]])
def test_batches_that_come_now_and_then_are_no_step(pattern: list[int]) -> None:
    found = estimates([0, *(pattern * 20)])[24:]
    mean = 2 * sum(pattern) / len(pattern)
    assert all(abs(rate - mean) <= 0.45 * mean for rate in found)


def test_a_single_burst_is_no_step() -> None:
    found = estimates([0] + [50] * 12 + [500, 500] + [50] * 12)
    assert max(found) <= 280.0 + 1e-9, "what the window has"
