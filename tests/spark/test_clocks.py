"""What goes by a clock while input stands still: timers, keys that are forgotten, windows, a stream that is idle."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from spark_kit import Row, bag
from waiting import wait_until

from springtide import PROCESSING_TIME, App, Ttl, agg, sinks, sources
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.dataflow.stream import Stream
from springtide.engine.lifecycle.running import Running
from springtide.metrics.report import EpochReport
from springtide.state.timers import Timer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
START_S = 1_700_000_000.0
EACH, EPOCHS, KEYS = 40, 3, 7
SECOND_US, TTL_US = 1_000_000, 60_000
WITHIN_S = 120.0


@dataclass(frozen=True)
class Started:
    """An app that runs; its reports as they come."""

    running: Running
    reports: list[EpochReport]

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        def look() -> bool:
            assert self.running.active, f"the app ended, waiting for {what}"
            return condition()

        wait_until(what, look, WITHIN_S)

    def keys(self, step: str) -> int | None:
        """Keys that a step knew after the last epoch."""
        last = self.reports[-1].operators if self.reports else ()
        return next((operator.state_rows for operator in last if operator.step == step), None)


@contextmanager
def started(app: App, spark: "SparkSession", place: Path) -> Iterator[Started]:
    """Runs an app; in the end nothing asks for another epoch."""
    reports: list[EpochReport] = []
    places = {"checkpoint": str(place / "checkpoint"), "local": str(place / "local")}
    running = app.start(spark, **places, on_epoch=reports.append)  # type: ignore[arg-type]
    found = Started(running, reports)
    try:
        yield found
        found.until("nothing to ask for another epoch", lambda: running._supervisor.runner.expiring() is None)
    finally:
        running.stop()


def ringing(keyed: KeyedStream) -> Stream:
    """Timers by the wall clock that ring twice, and then their key is forgotten."""

    def seen(key: Row, rows: list[Row], state: Row | None, timer: Timer) -> tuple[Row, list[Row]]:
        timer.set(timer.now + timedelta(seconds=1))  # type: ignore[operator]
        return {"n": len(rows) + (state["n"] if state else 0), "rings": 0}, []

    def rung(key: Row, state: Row, timer: Timer) -> tuple[Row | None, list[Row]]:
        timer.set(timer.now + timedelta(milliseconds=100))  # type: ignore[operator]
        told = [{"key": key["key"], **state}]
        return (None if state["rings"] else {**state, "rings": 1}), told

    fields = {"n": int, "rings": int}
    return keyed.reduce("timers", seen, state=fields, output={"key": int, **fields}, on_timer=rung)


def test_the_wall_clock_goes_on_while_no_row_comes(spark: "SparkSession", tmp_path: Path) -> None:
    """One epoch with rows: timers ring twice, a window closes, and keys are forgotten."""
    source = sources.generator(100, limit=EACH, keys=KEYS, start_s=START_S)
    app, rings, windows, counts = App("wall"), sinks.memory(), sinks.memory(), sinks.memory()
    keyed = app.source("rows", source).key_by("key")
    ringing(keyed).sink("rings", rings)
    keyed.aggregate("recent", n=agg.count(), ttl="1 second").sink("counts", counts)
    seconds = keyed.window(PROCESSING_TIME, "1 second").aggregate("seconds", n=agg.count())
    seconds.sink("windows", windows, mode="final")
    rows = source.spec.rows(0, EACH, START_S).to_pylist()
    numbers = {key: sum(row["key"] == key for row in rows) for key in {row["key"] for row in rows}}
    twice = [{"key": key, "n": n, "rings": time} for key, n in numbers.items() for time in (0, 1)]
    with started(app, spark, tmp_path) as it:
        it.until("both rings", lambda: len(rings.rows()) >= len(twice))
        it.until("the window to close", lambda: len(windows.rows()) >= len(numbers))
        it.until("everybody to be forgotten", lambda: it.keys("recent") == 0)
    assert bag(rings.rows()) == bag(twice)
    assert {row["key"]: row["n"] for row in windows.rows()} == numbers
    assert all(row["window_end"] - row["window_start"] == timedelta(seconds=1) for row in windows.rows())
    assert bag(counts.rows()) == bag({"key": key, "n": n} for key, n in numbers.items()), "nothing is said of it"
    assert [report.rows_in for report in it.reports if not report.without_input] == [EACH]
    assert {it.keys(step) for step in ("timers", "recent", "seconds")} == {0}


def test_event_time_goes_on_by_the_streams_that_send(spark: "SparkSession", tmp_path: Path) -> None:
    """A join with a stream that sends nothing waits until that is idle, and for ever if it never is."""
    source = sources.generator(100, limit=EPOCHS * EACH, keys=KEYS, start_s=START_S, max_rows_per_epoch=EACH)
    ddl, silent = "key BIGINT, at TIMESTAMP", tmp_path / "silent"
    silent.mkdir()
    app, alone, waiting, counts = App("event"), sinks.memory(), sinks.memory(), sinks.memory()
    left = app.source("left", source).transform("times", lambda df: df.selectExpr("key", "event_time AS at", "id"))
    files = sources.files(str(silent), format="parquet", schema=ddl)
    for name, out, idle in (("idle", alone, "1 second"), ("awake", waiting, None)):
        right = app.source(name, files, idle=idle).key_by("key")
        span = timedelta(0), timedelta(microseconds=TTL_US)
        joined = left.key_by("key").join(f"with-{name}", right, how="left", time=("at", "at"), within=span)
        joined.sink(f"joined-{name}", out)
    ttl = Ttl(timedelta(microseconds=TTL_US), time="at")
    left.key_by("key").aggregate("recent", n=agg.count(), ttl=ttl).sink("counts", counts)

    epochs = [_rows(source, epoch) for epoch in range(EPOCHS)]
    newest = max(at for rows in epochs for _, at, _ in rows)
    over = [row for rows in epochs for row in rows if row[1] + TTL_US < newest]
    expected, remembered = _recent(epochs)
    with started(app, spark, tmp_path) as it:
        it.until("rows that match nothing", lambda: len(alone.rows()) >= len(over))
        it.until("keys to be forgotten", lambda: it.keys("recent") == remembered)
    found = [(row["key"], round(row["at"].timestamp() * SECOND_US), row["id"]) for row in alone.rows()]
    assert sorted(found) == sorted(over)
    assert all(row["at_right"] is None for row in alone.rows())
    assert not waiting.rows()
    assert {e: bag(t.to_pylist()) for e, t in counts.epochs.items() if t.num_rows} == {
        epoch: bag({"key": key, "n": n} for key, n in of_epoch.items()) for epoch, of_epoch in enumerate(expected)
    }


def _rows(source: sources.Generator, epoch: int) -> list[tuple[int, int, int]]:
    """Key, time and number of the rows of an epoch."""
    made = source.spec.rows(epoch * EACH, (epoch + 1) * EACH, START_S)
    columns = made["key"], made["event_time"].cast(pa.int64()), made["id"]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _recent(epochs: list[list[tuple[int, int, int]]]) -> tuple[list[dict[int, int]], int]:
    """By epoch and key: its rows since it was forgotten last; and how many keys are known in the end."""
    found, last, counts = list[dict[int, int]](), dict[int, int](), dict[int, int]()
    newest = 0
    for rows in epochs:
        counts = {key: n for key, n in counts.items() if last[key] + TTL_US > newest}
        for key, at, _ in rows:
            counts[key], last[key], newest = counts.get(key, 0) + 1, at, max(newest, at)
        found.append({key: counts[key] for key, _, _ in rows})
    return found, sum(last[key] + TTL_US > newest for key in last)
