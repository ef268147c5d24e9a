from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.testing import ManualClock, StepHarness

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def counting() -> App:
    app = App("words", slices=8)
    words = app.source("words", sources.generator(1, words_per_row=1))
    words.key_by("text").aggregate("count", n=agg.count()).sink("out", sinks.memory())
    return app


@given(st.lists(st.tuples(st.integers(1, 8), st.lists(st.sampled_from("abcdefgh"), max_size=12)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_state_is_independent_of_parallelism(epochs: list[tuple[int, list[str]]]) -> None:
    harness = StepHarness(counting(), "count", {"text": str})
    seen: Counter[str] = Counter()
    for instances, words in epochs:
        harness.instances = instances
        seen.update(words)
        assert harness.epoch([{"text": w} for w in words]) == [{"text": w, "n": seen[w]} for w in sorted(set(words))]
    assert {row["text"]: row["n.0"] for row in harness.state()} == seen
    assert harness.keys == len(seen)


def test_windows_close_by_event_time_and_leave_no_state() -> None:
    app = App("clicks")
    clicks = app.source("clicks", sources.generator(1))
    windows = clicks.key_by("user").window("at", "10 minutes", late="5 minutes")
    windows.aggregate("clicks-by-user", n=agg.count()).sink("out", sinks.memory(), mode="final")
    harness = StepHarness(app, "clicks-by-user", {"user": str, "at": datetime})

    def at(minutes: float) -> datetime:
        return NOON + timedelta(minutes=minutes)

    assert [r["final"] for r in harness.epoch([{"user": "u", "at": at(1)}, {"user": "u", "at": at(2)}])] == [False]
    harness.epoch([{"user": "v", "at": at(16)}])
    (closed,) = [r for r in harness.epoch([{"user": "v", "at": at(3)}, {"user": "v", "at": None}]) if r["final"]]
    assert (closed["user"], closed["n"], closed["window_start"]) == ("u", 2, NOON)
    assert (harness.late_rows, harness.malformed_rows, harness.keys) == (1, 1, 1)


def test_map_batches_runs_on_tables() -> None:
    app = App("lengths")
    rows = app.source("rows", sources.generator(1, words_per_row=1))
    measure = lambda t: pa.table({"n": [len(v) for v in t["text"].to_pylist()]})  # noqa: E731
    rows.map_batches("lengths", measure, {"n": int}).sink("out", sinks.memory())
    assert StepHarness(app, "lengths", {"text": str}).epoch([{"text": "tide"}]) == [{"n": 4}]


def test_a_step_that_needs_spark_is_refused() -> None:
    app = counting()
    with pytest.raises(BadGraph, match=r"'words'.*keyed step or map_batches"):
        StepHarness(app, "words", {"text": str})


def test_the_manual_clock_moves_when_told() -> None:
    clock = ManualClock(10.0)
    clock.advance(2.5)
    assert clock() == 12.5
