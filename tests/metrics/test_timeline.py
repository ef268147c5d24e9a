"""Timelines: rates and latency in a window that moves."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.metrics.migration.timeline import TimelinePoint, timeline
from springtide.metrics.report import EpochReport, Phases

ASKED = 1_790_000_000.0


def report(epoch: int, end: float, rows: int = 8, latency_s: float | None = 0.5) -> EpochReport:
    return EpochReport("app", epoch, ASKED + end, 1, False, rows, 4 * rows, None, latency_s, 0, Phases(compute_s=1.0))


STEADY = [report(t + 60, float(t)) for t in range(-60, 61)]


def test_a_steady_flow_has_steady_lines() -> None:
    found = timeline(STEADY, ASKED)
    assert [m.at_s for m in found] == [float(t) for t in range(-50, 60)]
    assert {(m.rows_in_per_s, m.rows_out_per_s, m.latency_s) for m in found} == {(8.0, 32.0, 0.5)}


def test_a_stop_is_seen_where_it_was() -> None:
    """Nothing is taken from 0 to 20 s; then all that waited, which is out a second later."""
    reports = [r for r in STEADY if r.ended_at <= ASKED or r.ended_at > ASKED + 21]
    late = [report(61, 21.0, 8 * 21, 20.0)]
    found = {m.at_s: m for m in timeline([*late, *reports], ASKED)}
    assert (found[-1.0].rows_in_per_s, found[0.0].rows_out_per_s) == (8.0, 32.0)
    assert found[5.0].rows_out_per_s == 16.0
    assert found[15.0] == TimelinePoint(15.0, 0.0, 0.0, None)
    assert (found[20.0].rows_in_per_s, found[20.0].rows_out_per_s) == (16.8, pytest.approx(22.4))
    assert found[21.0].latency_s == 20.0
    assert found[23.0].latency_s == pytest.approx((21 * 20.0 + 0.5 + 0.5) / 23), "rows weigh the same, not epochs"
    assert (found[45.0].rows_in_per_s, found[45.0].rows_out_per_s, found[45.0].latency_s) == (8.0, 32.0, 0.5)


def test_repeated_epochs_are_taken_in_again_and_not_given_out_again() -> None:
    repeated = [replace(r, replayed=ASKED < r.ended_at <= ASKED + 20) for r in STEADY]
    at_15 = next(m for m in timeline(repeated, ASKED) if m.at_s == 15.0)
    assert at_15 == TimelinePoint(15.0, 8.0, 0.0, None)
    at_15 = next(m for m in timeline(repeated, ASKED, repeats_are_output=True) if m.at_s == 15.0)
    assert at_15 == TimelinePoint(15.0, 8.0, 32.0, 0.5)


def test_sources_that_can_not_tell_their_latency_leave_it_open() -> None:
    assert {m.latency_s for m in timeline([replace(r, latency_s=None) for r in STEADY], ASKED)} == {None}


@pytest.mark.parametrize("count", [0, 1, 9])
def test_reports_that_cover_no_window_give_nothing(count: int) -> None:
    assert timeline(STEADY[:count], ASKED) == ()


@pytest.mark.parametrize("wrong", [{"window_s": 0.0}, {"step_s": -1.0}])
def test_windows_and_steps_take_time(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected more than 0 seconds"):
        timeline(STEADY, ASKED, **wrong)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    gaps=st.lists(st.integers(1, 40), min_size=30, max_size=60),
    rows=st.lists(st.integers(0, 99), min_size=60, max_size=60),
    shift=st.integers(0, 10_000),
)
def test_all_rows_are_in_the_line_and_another_clock_changes_nothing(
    gaps: list[int], rows: list[int], shift: int
) -> None:
    """Windows side by side cover all that came out in their time; a lump is spread over a few seconds at most."""
    reports, at = [], -20.0
    for epoch, (gap, count) in enumerate(zip(gaps, rows, strict=False)):
        at += gap / 8
        reports.append(report(epoch, at, count))
    found = timeline(reports, ASKED, window_s=1.0)
    total = sum(m.rows_out_per_s for m in found)
    assert total <= sum(r.rows_out for r in reports) + 1e-6
    inside = [r for r in reports if found and found[0].at_s + 8 < r.ended_at - ASKED <= found[-1].at_s]
    assert total >= sum(r.rows_out for r in inside) - 1e-6
    later = [replace(r, ended_at=r.ended_at + shift) for r in reports]
    assert timeline(later, ASKED + shift, window_s=1.0) == found
