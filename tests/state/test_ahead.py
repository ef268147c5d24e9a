"""Event time that runs ahead of the clock: rows too far ahead are kept out, counted, and do not move the watermark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from springtide import App, agg, sinks, sources
from springtide.errors import BadValue
from springtide.testing import ManualClock, StepHarness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = {"k": str, "t": pa.timestamp("us", "UTC")}
POISON = datetime(9999, 1, 1, tzinfo=UTC)


def clock() -> ManualClock:
    return ManualClock(NOON.timestamp())


def windows(**options: Any) -> StepHarness:
    app = App("ahead")
    keyed = app.source("rows", sources.files("none", format="text")).key_by("k")
    keyed.window("t", "1 minute", **options).aggregate("counts", n=agg.count()).sink("out", sinks.noop())
    return StepHarness(app, "counts", COLUMNS, clock=clock())


def firsts(**options: Any) -> StepHarness:
    app = App("ahead")
    keyed = app.source("rows", sources.files("none", format="text")).key_by("k")
    keyed.dedupe("firsts", column="t", within="1 minute", **options).sink("out", sinks.noop())
    return StepHarness(app, "firsts", COLUMNS, clock=clock())


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


@pytest.mark.parametrize("made", [windows, firsts])
def test_one_row_of_a_far_time_does_not_make_all_others_late(made: Any) -> None:
    harness = made()
    harness.epoch([{"k": "a", "t": at(-10)}])
    assert harness.epoch([{"k": "x", "t": POISON}]) == [], "it is kept out"
    assert harness.epoch([{"k": "b", "t": at(-9)}]) != []
    assert (harness.late_rows, harness.ahead_rows, harness.malformed_rows) == (0, 1, 0)
    assert harness.watermark_us is not None
    assert harness.watermark_us < NOON.timestamp() * 1e6


@pytest.mark.parametrize("made", [windows, firsts])
def test_the_bound_itself_is_not_too_far(made: Any) -> None:
    harness = made(ahead="1 hour")
    found = harness.epoch([{"k": "a", "t": at(60)}, {"k": "b", "t": at(60) + timedelta(microseconds=1)}])
    assert [row["k"] for row in found] == ["a"]
    assert harness.ahead_rows == 1
    harness._clock.advance(1.0)
    assert [row["k"] for row in harness.epoch([{"k": "b", "t": at(60) + timedelta(seconds=1)}])] == ["b"]


@pytest.mark.parametrize("made", [windows, firsts])
def test_data_of_a_time_to_come_can_be_taken(made: Any) -> None:
    harness = made(ahead=None)
    assert harness.epoch([{"k": "x", "t": POISON}]) != []
    assert harness.ahead_rows == 0


def test_times_that_no_clock_reaches_are_kept_out() -> None:
    """Values at the end of what a column can hold must not wrap around."""
    for us in (2**63 - 1, 2**62):
        harness = windows()
        times = pa.array([us], pa.int64()).view(COLUMNS["t"])
        assert harness.epoch(pa.table({"k": pa.array(["a"]), "t": times})) == []
        assert harness.ahead_rows == 1


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(BadValue, match="out of range: expected a duration from 0"):
        windows(ahead=timedelta(seconds=-1))
