"""Early results: open windows tell of their rows when event time passes a multiple of an interval, and only then."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.errors import BadValue
from springtide.testing import StepHarness
from springtide.testing.harness import stable_hash

UNIX = datetime(1970, 1, 1, tzinfo=UTC)
SIZE, LATE, EARLY = 20, 4, 5
Window = tuple[str, int]


def harness(**options: Any) -> StepHarness:
    app = App("app", slices=8)
    windows = app.source("rows", sources.generator(1)).key_by("k").window("at", f"{SIZE} seconds", **options)
    windows.aggregate("step", n=agg.sum("n")).sink("out", sinks.memory())
    return StepHarness(app, "step", {"k": str, "at": datetime, "n": int}, hash=lambda key: stable_hash(key) % 3 << 61)


rows = st.tuples(st.sampled_from("abc"), st.integers(0, 100), st.integers(0, 5))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(rows, max_size=6), max_size=8), st.lists(st.integers(1, 4), min_size=1))
def test_they_come_when_event_time_passes_a_multiple_and_rows_came_since(
    epochs: list[Any], instances: list[int]
) -> None:
    step = harness(late=f"{LATE} seconds", early=f"{EARLY} seconds")
    open_: dict[Window, int] = {}
    untold: dict[Window, int] = {}
    """By window: the multiple that event time had passed when its newest rows came."""
    newest: int | None = None
    for number, drawn in enumerate([*epochs, []]):
        expected = []
        passed = -1 if newest is None else newest // EARLY
        for window in list(open_):
            key, start = window
            if newest is not None and start + SIZE <= newest - LATE:
                expected.append((key, start, open_.pop(window), True))
                untold.pop(window, None)
            elif window in untold and untold[window] < passed:
                expected.append((key, start, open_[window], False))
                del untold[window]
        for key, at, n in drawn:
            start = at - at % SIZE
            if newest is None or start + SIZE > newest - LATE:
                open_[key, start] = open_.get((key, start), 0) + n
                untold[key, start] = passed
        step.instances = instances[number % len(instances)]
        found = step.epoch([{"k": k, "at": UNIX + timedelta(seconds=at), "n": n} for k, at, n in drawn])
        told = [(r["k"], round((r["window_start"] - UNIX).total_seconds()), r["n"], r["final"]) for r in found]
        assert sorted(told) == sorted(expected)
        newest = max([at for _, at, _ in drawn] + ([] if newest is None else [newest]), default=None)


def test_an_interval_is_more_than_nothing() -> None:
    with pytest.raises(BadValue, match="early must be positive"):
        harness(early="0 seconds")
