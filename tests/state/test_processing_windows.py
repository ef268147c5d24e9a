"""Windows by processing time against plain Python: a row has the time of its epoch, and the clock closes windows."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Hash

from springtide import PROCESSING_TIME, App, agg, sinks, sources
from springtide.testing import ManualClock, StepHarness

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
START_US = 1_000_000_000


def harness(size_us: int, slide_us: int, hash_of: Hash, clock: ManualClock) -> StepHarness:
    app = App("app", slices=8)
    spans = timedelta(microseconds=size_us), timedelta(microseconds=slide_us)
    windows = app.source("rows", sources.generator(1)).key_by("k").window(PROCESSING_TIME, *spans)
    windows.aggregate("step", n=agg.count(), total=agg.sum("v")).sink("out", sinks.memory())
    return StepHarness(app, "step", {"k": str, "v": int}, hash=hash_of, clock=clock)


def at(us: int) -> datetime:
    return BEGINNING + timedelta(microseconds=us)


epochs = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 5)), max_size=4),
        st.integers(-10, 40),
        st.integers(1, 4),
    ),
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(epochs, st.integers(1, 30), st.integers(1, 30), st.sampled_from(list(HASHES.values())))
def test_each_window_closes_once_when_the_clock_has_reached_its_end(
    drawn: Any, one: int, other: int, hash_of: Hash
) -> None:
    """A clock that goes back stands still."""
    size_us, slide_us = max(one, other), min(one, other)
    clock = ManualClock(START_US / 1e6)
    fed = harness(size_us, slide_us, hash_of, clock)
    stamped: list[tuple[int, str | None, int]] = []
    finals: Counter[tuple[Any, ...]] = Counter()
    now_us = 0
    for rows, passed, instances in [*drawn, ([], 100, 1)]:
        clock.advance(passed / 1e6)
        now_us = max(now_us, round(clock() * 1e6))
        stamped += [(now_us, key, value) for key, value in rows]
        fed.instances = instances
        found = fed.epoch([{"k": key, "v": value} for key, value in rows])
        assert fed.late_rows == 0
        finals += Counter(_row(row) for row in found if row["final"])
        everything = _windows(stamped, size_us, slide_us)
        assert finals == {row: 1 for row in everything if row[2] <= at(now_us)}
        touched = {key for key, _ in rows}
        updates = Counter(_row(row) for row in found if not row["final"])
        open_now = [row for row in everything if row[1] <= at(now_us) < row[2] and row[0] in touched]
        assert updates == Counter(open_now)
    assert fed.keys == 0


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["k"], row["window_start"], row["window_end"], row["n"], row["total"]


def _windows(stamped: list[tuple[int, str | None, int]], size_us: int, slide_us: int) -> list[tuple[Any, ...]]:
    """Every window with a row, by looking at each start that there may be."""
    if not stamped:
        return []
    times = [us for us, *_ in stamped]
    first, last = (min(times) - size_us) // slide_us, max(times) // slide_us
    found = []
    for start in range(first * slide_us, last * slide_us + 1, slide_us):
        inside = [(key, value) for us, key, value in stamped if start <= us < start + size_us]
        for key in {key for key, _ in inside}:
            values = [value for other, value in inside if other == key]
            found.append((key, at(start), at(start + size_us), len(values), sum(values)))
    return found
