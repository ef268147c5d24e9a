"""Event-time windows: which ones a row is in, and whole runs with watermarks against an oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_kit import HASHES, Farm, Hash, Row, canon, good_hash, multiset

from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.position import slice_of
from springtide.state.window import Window, event_times, spread

SECOND = 1_000_000
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
KEY = pa.schema([("k", pa.string())])
ROWS = pa.schema([("k", pa.string()), ("t", TIME), ("v", pa.int64())])


def at(us: int) -> datetime:
    return BEGINNING + timedelta(microseconds=us)


def brute_force(event_us: int, size: int, slide: int) -> set[int]:
    """The starts of all windows that hold an event, tried one by one."""
    near = range(event_us // slide - size // slide - 2, event_us // slide + 3)
    return {n * slide for n in near if n * slide <= event_us < n * slide + size}


@settings(max_examples=150, deadline=None)
@given(
    events=st.lists(st.one_of(st.integers(-100, 100), st.integers(-(2**50), 2**50)), max_size=8),
    slide=st.integers(1, 30),
    more=st.integers(0, 60),
)
def test_assignment_equals_brute_force(events: list[int], slide: int, more: int) -> None:
    rows, starts = Window("t", slide + more, slide, 0).assign(np.array(events, np.int64))
    got: list[set[int]] = [set() for _ in events]
    for row, start in zip(rows, starts, strict=True):
        assert int(start) not in got[row], "a row is in a window once"
        got[row].add(int(start))
    assert got == [brute_force(e, slide + more, slide) for e in events]


def test_the_start_belongs_to_a_window_and_the_end_does_not() -> None:
    rows, starts = Window("t", 10, 10, 0).assign(np.array([-10, -1, 0, 9, 10]))
    assert (rows.tolist(), starts.tolist()) == ([0, 1, 2, 3, 4], [-10, -10, 0, 0, 10])


@pytest.mark.parametrize(
    ("size", "slide", "late", "says"),
    [
        (0, 1, 0, "positive"),
        (1, 0, 0, "positive"),
        (-5, -5, 0, "positive"),
        (5, 5, -1, "late not negative"),
        (5, 6, 0, "slide longer than the size"),
    ],
)
def test_windows_that_make_no_sense_are_refused(size: int, slide: int, late: int, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        Window("t", size, slide, late)
    assert "'t'" in str(caught.value), "the error names the column"


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s")])
def test_event_times_are_microseconds_and_nulls_have_none(kind: pa.DataType) -> None:
    column = pa.chunked_array(
        [pa.array([at(-2 * SECOND), None], TIME).cast(kind), pa.array([at(SECOND)], TIME).cast(kind)]
    )
    times, valid = event_times(column)
    assert valid.tolist() == [True, False, True]
    assert times[valid].tolist() == [-2 * SECOND, SECOND]


@settings(max_examples=60, deadline=None)
@given(
    hashes=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
    start=st.integers(-(2**62), 2**62),
    bits=st.integers(0, 15),
)
def test_a_window_stays_in_the_slice_of_its_key(hashes: list[int], start: int, bits: int) -> None:
    """Else the rows of one window of a key would go to another instance than those of the next."""
    where, slices = np.array(hashes, np.uint64), 1 << bits
    spread_out = spread(where, np.full(len(where), start), slices)
    assert (slice_of(spread_out, slices) == slice_of(where, slices)).all()


def test_windows_of_one_key_lie_apart() -> None:
    starts = np.arange(10_000) * SECOND
    assert len(np.unique(spread(np.full(len(starts), 7, np.uint64), starts, 128))) == len(starts)


@dataclass
class Oracle:
    """Windowed counts and sums, row by row."""

    window: Window
    open: dict[tuple[Any, int], list[Any]] = field(default_factory=dict)
    newest: int | None = None
    watermark: int | None = None
    late: int = 0
    malformed: int = 0

    def epoch(self, rows: Sequence[Row]) -> list[Row]:
        self.late = self.malformed = 0
        if self.newest is not None:
            mark = self.newest - self.window.late_us
            self.watermark = mark if self.watermark is None else max(mark, self.watermark)
        touched: set[tuple[Any, int]] = set()
        for row in rows:
            self._add(row, touched)
        closed = [w for w in self.open if self.watermark is not None and w[1] + self.window.size_us <= self.watermark]
        output = [self._row(w, self.open[w], final=False) for w in touched]
        output += [self._row(w, self.open.pop(w), final=True) for w in closed]
        times = [_us(r["t"]) for r in rows if r["t"] is not None]
        self.newest = max([*times, *([] if self.newest is None else [self.newest])], default=None)
        return output

    def _add(self, row: Row, touched: set[tuple[Any, int]]) -> None:
        if row["t"] is None:
            self.malformed += 1
            return
        starts = brute_force(_us(row["t"]), self.window.size_us, self.window.slide_us)
        starts = {s for s in starts if self.watermark is None or s + self.window.size_us > self.watermark}
        self.late += not starts
        for start in starts:
            held = self.open.setdefault((canon(row["k"]), start), [0, None])
            held[0] += 1
            held[1] = row["v"] if held[1] is None else held[1] + (row["v"] or 0)
            touched.add((canon(row["k"]), start))

    def _row(self, window: tuple[Any, int], held: list[Any], *, final: bool) -> Row:
        key, start = window
        ends = at(start + self.window.size_us)
        return {
            "k": key,
            "window_start": at(start),
            "window_end": ends,
            "n": held[0],
            "total": held[1],
            "final": final,
        }


def _us(time: datetime) -> int:
    return (time - BEGINNING) // timedelta(microseconds=1)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["us", "ms"])
def test_windows_have_the_zone_of_their_event_times_or_none(zone: str | None, unit: str) -> None:
    """In the output and in the state, for updates and for final rows; the zone moves no window."""
    rows = pa.schema([("k", pa.string()), ("t", pa.timestamp(unit, zone)), ("v", pa.int64())])
    logic = AggregateLogic(KEY, rows, {"n": agg.count()}, 4, Window("t", 10 * SECOND, 10 * SECOND, 0))
    for name in ("window_start", "window_end"):
        assert logic.output.field(name).type == pa.timestamp("us", zone)
    assert logic.layout.key.field("window_start").type == pa.timestamp("us", zone)
    farm = Farm(logic, rows, good_hash, 4, [0, 0, 1, 1])
    times = pa.array([12, 17, 31], pa.timestamp("s")).cast(pa.timestamp(unit)).to_pylist()
    times = times if zone is None else [time.replace(tzinfo=UTC) for time in times]
    found = farm.epoch([{"k": "a", "t": time, "v": 1} for time in times]).output + farm.epoch().output
    expected = {(10, 20, 2, False), (30, 40, 1, False), (10, 20, 2, True)}
    assert {(_s(r["window_start"]), _s(r["window_end"]), r["n"], r["final"]) for r in found} == expected
    assert {r["window_start"].tzinfo is None for r in found} == {zone is None}


def _s(time: datetime) -> int:
    return _us(time if time.tzinfo is not None else time.replace(tzinfo=UTC)) // SECOND


def windowed(window: Window, hash_of: Hash = good_hash, owner: list[int] | None = None) -> Farm:
    logic = AggregateLogic(KEY, ROWS, {"n": agg.count(), "total": agg.sum("v")}, 4, window)
    return Farm(logic, ROWS, hash_of, 4, owner or [0, 0, 1, 1])


row = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None, ""]),
        "t": st.one_of(st.none(), st.integers(-40, 60).map(at)),
        "v": st.one_of(st.none(), st.integers(-3, 3)),
    }
)


@settings(max_examples=80, deadline=None)
@given(
    epochs=st.lists(st.lists(st.lists(row, max_size=5), max_size=2), max_size=7),
    slide=st.integers(1, 12),
    more=st.integers(0, 15),
    late=st.integers(0, 20),
    hash_of=st.sampled_from(list(HASHES.values())),
    owners=st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=3),
)
def test_windowed_epochs_equal_the_oracle(
    epochs: list[list[list[Row]]], slide: int, more: int, late: int, hash_of: Hash, owners: list[list[int]]
) -> None:
    """Updates, one final row a window, late and malformed rows, and the keys held, epoch by epoch."""
    window = Window("t", slide + more, slide, late)
    farm, oracle = windowed(window, hash_of), Oracle(window)
    finals: list[Row] = []
    for number, parts in enumerate(epochs):
        farm.owner = owners[number % len(owners)]
        expected = oracle.epoch([r for part in parts for r in part])
        result = farm.epoch(*parts)
        assert multiset(result.output) == multiset(expected)
        assert (result.late_rows, result.malformed_rows) == (oracle.late, oracle.malformed)
        assert farm.keys == len(oracle.open) == len(farm.stored())
        finals += [r for r in result.output if r["final"]]
    farm.newest_us = 10**9
    finals += farm.epoch().output
    closed = multiset({n: r[n] for n in ("k", "window_start")} for r in finals)
    assert all(r["final"] for r in finals)
    assert all(times == 1 for times in closed.values()), "a window closes exactly once"
    assert farm.keys == 0
    assert farm.stored() == []
    assert farm.epoch().output == []


def test_closed_windows_take_no_space() -> None:
    farm = windowed(Window("t", 10, 10, 0))
    for second in range(60):
        farm.epoch([{"k": f"key {i}", "t": at(second), "v": 1} for i in range(20)])
    assert farm.keys == 20, "one open window a key"
    assert sum(ref.rows for ref in farm.runs) <= 6 * 20, "nothing of the 100 closed windows is left but some tombstones"
    farm.newest_us = 10**9
    farm.epoch()
    assert (farm.keys, farm.runs) == (0, ())


def test_a_row_is_late_only_if_all_its_windows_are_over() -> None:
    farm = windowed(Window("t", 10, 5, 0))
    farm.epoch([{"k": "a", "t": at(20), "v": 1}])
    result = farm.epoch([{"k": "a", "t": at(14), "v": 2}, {"k": "a", "t": at(17), "v": 4}])
    assert result.late_rows == 1, "14 lies in [5, 15) and [10, 20), both over at 20; 17 in [15, 25), still open"
    open_ = {(r["window_start"], r["total"]) for r in result.output if not r["final"]}
    assert open_ == {(at(15), 5)}


def test_a_late_row_does_not_reopen_a_window() -> None:
    farm = windowed(Window("t", 10, 10, 0))
    farm.epoch([{"k": "a", "t": at(5), "v": 1}, {"k": "a", "t": at(30), "v": 1}])
    assert [r["n"] for r in farm.epoch().output if r["final"]] == [1]
    result = farm.epoch([{"k": "a", "t": at(5), "v": 1}])
    assert (result.late_rows, result.output) == (1, [])


def test_rows_of_an_epoch_are_judged_by_the_watermark_it_started_with() -> None:
    """A row of the same epoch that is far ahead does not make its neighbours late: replay gives the same."""
    farm = windowed(Window("t", 10, 10, 0))
    result = farm.epoch([{"k": "a", "t": at(10**6), "v": 1}], [{"k": "a", "t": at(5), "v": 1}])
    assert result.late_rows == 0
    assert len([r for r in result.output if not r["final"]]) == 2
