"""Late rows as a stream: the rows that a step counts as late, and no others."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.dataflow.stream import Stream
from springtide.testing import StepHarness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = {"k": str, "at": datetime, "n": int}
STEPS: dict[str, Callable[[KeyedStream], Stream]] = {
    "window": lambda s: s.window("at", "10 seconds", late="3 seconds").aggregate("step", n=agg.count()),
    "sliding": lambda s: s.window("at", "10 seconds", "4 seconds", late="3 seconds").aggregate("step", n=agg.count()),
    "session": lambda s: s.session("at", gap="5 seconds", late="3 seconds").aggregate("step", n=agg.count()),
    "dedupe": lambda s: s.dedupe("step", column="at", within="5 seconds"),
    "join": lambda s: s.join("step", s, time=("at", "at"), within=("0 seconds", "5 seconds"), late="3 seconds"),
    "window-join": lambda s: s.join("step", s, time=("at", "at"), window="5 seconds", late="3 seconds"),
    "as-of": lambda s: s.as_of("step", s, time=("at", "at"), late="3 seconds"),
}
LATE_FROM = {
    "window": lambda t, reached: t - t % 10 + 10 <= reached - 3,
    "sliding": lambda t, reached: t - t % 4 + 10 <= reached - 3,
    "session": lambda t, reached: t < reached - 3,
    "dedupe": lambda t, reached: t <= reached - 5,
    "join": lambda t, reached: t < reached - 3,
    "window-join": lambda t, reached: t - t % 5 + 5 <= reached - 3,
    "as-of": lambda t, reached: t < reached - 3,
}
"""By step: whether a row is late, given the newest time of earlier epochs; both in seconds since noon."""


@pytest.mark.parametrize("kind", sorted(STEPS))
@settings(max_examples=40, deadline=None)
@given(epochs=st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=6))
def test_they_are_the_rows_that_came_after_their_time(kind: str, epochs: list[list[int]]) -> None:
    app = App("app", slices=8)
    stream = STEPS[kind](app.source("rows", sources.generator(1)).key_by("k"))
    stream.sink("out", sinks.memory())
    stream.late.sink("late", sinks.memory())
    sides = 2 if "join" in kind or kind == "as-of" else 1
    step = StepHarness(app, "step", [COLUMNS] * sides if sides > 1 else COLUMNS)
    counted, reached = 0, -1_000
    for times in epochs:
        rows = [{"k": "a", "at": NOON + timedelta(seconds=t), "n": n} for n, t in enumerate(times)]
        step.epoch(*[rows] * sides)
        late = [row for row, t in zip(rows, times, strict=True) if LATE_FROM[kind](t, reached)]
        assert step.late == late * sides
        counted += len(step.late)
        assert step.late_rows == counted
        reached = max([reached, *times])


def test_a_row_without_a_time_is_not_late() -> None:
    app = App("app")
    stream = STEPS["session"](app.source("rows", sources.generator(1)).key_by("k"))
    stream.sink("out", sinks.memory())
    step = StepHarness(app, "step", COLUMNS)
    step.epoch([{"k": "a", "at": NOON, "n": 0}])
    step.epoch([{"k": "a", "at": None, "n": 0}])
    assert (step.late, step.malformed_rows) == ([], 1)


def test_a_step_without_event_time_has_none() -> None:
    counts = App("app").source("rows", sources.generator(1)).key_by("k").aggregate("counts", n=agg.count())
    with pytest.raises(BadGraph, match="rows that may be late") as refused:
        _ = counts.late
    assert refused.value.step == "counts"
    sides: Any = STEPS["join"](App("app").source("rows", sources.generator(1)).key_by("k"))
    with pytest.raises(BadGraph, match="input 2 of 2"):
        sides.late_of(2)


def test_asked_for_twice_it_is_one_stream() -> None:
    stream = STEPS["window"](App("app").source("rows", sources.generator(1)).key_by("k"))
    assert stream.late is stream.late
