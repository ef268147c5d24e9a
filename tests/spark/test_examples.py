"""Every example on a small input, against an oracle in plain Python."""

import runpy
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from springtide import App, sinks, sources
from springtide.connectors.sources import Generator
from springtide.metrics.report import EpochReport
from springtide.workloads.dataflow_oracle import expected, faults, keys_of, miscounted
from springtide.workloads.dataflows import DATAFLOWS

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG_AGO_S = 1_700_000_000.0
"""All rows of a generator that started then are due now."""

RunApp = Callable[..., list[EpochReport]]
Row = dict[str, Any]


def example(name: str) -> dict[str, Any]:
    """An example's variables; not left in sys.modules, so that Spark sends its functions by value."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


def small(rate: float, limit: int, **options: Any) -> Generator:
    """A generator whose rows are all due, a quarter of them an epoch."""
    return sources.generator(rate, limit=limit, start_s=LONG_AGO_S, max_rows_per_epoch=limit // 4, **options)


def rows_of(source: Generator) -> list[Row]:
    spec = source.spec
    assert spec.limit is not None
    rows: list[Row] = spec.rows(0, spec.limit, LONG_AGO_S).to_pylist()
    return rows


def latest(sink: sinks.Memory, *key: str) -> dict[tuple[Any, ...], Row]:
    """The last row of each key."""
    return {tuple(row[name] for name in key): row for row in sink.rows()}


def bag(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset."""
    return Counter(tuple(sorted(row.items())) for row in rows)


@pytest.mark.parametrize(
    "name", ["wordcount", "clickstream", "sessions", "two_stage", "payments", "taxi_drives", "knn", *DATAFLOWS]
)
def test_an_example_defines_an_app_that_is_whole(name: str) -> None:
    app = example(name)["app"]
    assert isinstance(app, App)
    assert app.graph().nodes


def test_wordcount_of_generated_text(run_app: RunApp) -> None:
    source, sink = small(1000, 1200, words_per_row=6, keys=300, skew=1.1), sinks.memory()
    reports = run_app(example("wordcount")["build"](source, sink))
    expected = Counter(word for row in rows_of(source) for word in row["text"].split())
    assert {word: row["n"] for (word,), row in latest(sink, "word").items()} == dict(expected)
    assert [r.rows_in for r in reports] == [300] * 4


def test_wordcount_of_books(run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = {"one.txt": "The tide, the tide!\nIt's spring.\n\n", "two.txt": "  Spring tide\nÉtés 12 étés\n"}
    for name, text in books.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("BOOKS", str(tmp_path / "*.txt"))
    sink = sinks.memory()
    run_app(example("wordcount")["build"](None, sink))
    expected = {"the": 2, "tide": 3, "it's": 1, "spring": 2, "étés": 2, "12": 1}
    assert {word: row["n"] for (word,), row in latest(sink, "word").items()} == expected


def test_clickstream_closes_windows_once_and_with_all_rows(run_app: RunApp, tmp_path: Path) -> None:
    example_ = example("clickstream")
    source = small(20, 1600, keys=6, skew=0.5, disorder_s=3.0)
    updates, finals = sinks.memory(), sinks.parquet(str(tmp_path / "clicks.parquet"))
    reports = run_app(example_["build"](source, updates, finals))

    window, late = timedelta(seconds=10), timedelta(seconds=5)
    clicks = [
        {
            "user": row["key"],
            "page": example_["PAGES"][row["id"] % len(example_["PAGES"])],
            "at": row["event_time"],
            "seconds": int(row["value"] * 60),
        }
        for row in rows_of(source)
    ]
    every: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for click in clicks:
        start = datetime.fromtimestamp(click["at"].timestamp() // 10 * 10, UTC)
        every[click["user"], click["page"], start].append(click)

    def summary(key: tuple[Any, ...], final: bool) -> Row:
        user, page, start = key
        found = every[key]
        return {
            "user": user,
            "page": page,
            "window_start": start,
            "window_end": start + window,
            "clicks": len(found),
            "longest": max(c["seconds"] for c in found),
            "final": final,
        }

    # Rows are at most 3 seconds out of order and windows wait for 5: nothing is late. An epoch without rows closes
    # what the last ones have made due.
    assert sum(o.late_rows for r in reports for o in r.operators) == 0
    watermark = max(c["at"] for c in clicks) - late
    closed = [key for key in every if key[2] + window <= watermark]
    assert 0 < len(closed) < len(every)
    written = ds.dataset(tmp_path / "clicks.parquet", partitioning="hive").to_table().drop_columns("epoch")
    assert bag(written.to_pylist()) == bag([summary(key, True) for key in closed])

    assert bag([row for row in updates.rows() if row["final"]]) == bag([summary(key, True) for key in closed])
    running = {(r["user"], r["page"], r["window_start"]): r for r in updates.rows() if not r["final"]}
    assert bag(list(running.values())) == bag([summary(key, False) for key in every])


@pytest.mark.parametrize("vectorised", [False, True])
def test_sessions(run_app: RunApp, vectorised: bool) -> None:
    example_ = example("sessions")
    source, sink = small(2, 1200, keys=30, skew=0.8), sinks.memory()
    run_app(example_["build"](source, sink, vectorised=vectorised))

    ended, running = [], {}
    for row in rows_of(source):
        user, at = row["key"], row["event_time"]
        session = running.get(user)
        if session is not None and at - session["last"] <= timedelta(seconds=20):
            running[user] = {**session, "last": at, "events": session["events"] + 1}
            continue
        if session is not None:
            ended.append(session)
        running[user] = {"user": user, "began": at, "last": at, "events": 1}
    assert len(ended) > 100
    assert bag(sink.rows()) == bag(ended)


def test_two_stage(run_app: RunApp) -> None:
    example_ = example("two_stage")
    web, mobile, sink = small(10, 1200, seed=1, keys=80), small(10, 800, seed=2, keys=80), sinks.memory()
    reports = run_app(example_["build"](web, mobile, sink))

    points: Counter[int] = Counter()
    for row in rows_of(web) + rows_of(mobile):
        points[row["key"]] += 5 if row["value"] < 0.2 else 1
    expected = Counter(total // example_["POINTS_PER_LEVEL"] for total in points.values())
    found = {level: row["users"] for (level,), row in latest(sink, "level").items()}
    assert {level: users for level, users in found.items() if users} == dict(expected)
    assert set(found) - set(expected), "users climbed past some levels"
    assert [r.rows_in for r in reports] == [500] * 4


@pytest.mark.parametrize(
    "name", [name if name == "star" else pytest.param(name, marks=pytest.mark.slow) for name in DATAFLOWS]
)
def test_dataflows_hand_on_every_event_by_every_way_and_count_it_once(run_app: RunApp, name: str) -> None:
    events = 24
    source = sources.generator(8, limit=events, start_s=LONG_AGO_S, max_rows_per_epoch=events // 2, keys=6)
    sink, dataflow = sinks.memory(), DATAFLOWS[name]
    reports = run_app(example(name)["build"](source, sink, service_s=0.0005))

    right = expected(dataflow, range(events), keys_of(source, events).__getitem__)
    assert faults(sink.rows(), right) == (0, 0)
    assert miscounted(sink.rows(), right) == 0
    assert [r.rows_in for r in reports] == [events // 2] * 2
    last = {o.step: o.rows_in for o in reports[-1].operators}
    assert last == {task.name: dataflow.copies[task.name] * events // 2 for task in dataflow.tasks}


def test_payments_meet_their_orders(run_app: RunApp) -> None:
    """Every order in time comes once for each payment, or once without one; every one that is over has its rate."""
    orders, payments, rates = (small(rate, limit, keys=keys, seed=n) for n, (rate, limit, keys) in enumerate(SOURCES))
    paid, priced = sinks.memory(), sinks.memory()
    run_app(example("payments")["build"](orders, payments, rates, paid, priced))
    last = min(
        max(row["event_time"] for row in rows_of(each)[: each.spec.limit * 3 // 4]) for each in (orders, payments)
    )
    received, expected = defaultdict(list), Counter[tuple[Any, ...]]()
    for row in rows_of(payments):
        received[row["key"]].append(row["event_time"])
    for row in rows_of(orders):
        at = row["event_time"]
        found = [other for other in received[row["key"]] if timedelta(0) <= other - at <= timedelta(seconds=30)]
        expected.update((row["key"], at, other) for other in found)
        if not found and at + timedelta(seconds=30) < last - timedelta(seconds=5):
            expected[row["key"], at, None] += 1
    assert Counter((row["order"], row["at"], row["at_paid"]) for row in paid.rows()) == expected
    assert any(other is None for _, _, other in expected)
    quoted = sorted((row["event_time"], row["key"] % 3, row["id"]) for row in rows_of(rates))
    currencies = ("EUR", "USD", "SEK")
    assert priced.rows()
    for row in priced.rows():
        known = [rate for at, currency, rate in quoted if currencies[currency] == row["currency"] and at <= row["at"]]
        assert row["rate"] == (known[-1] if known else None)


SOURCES = ((10.0, 800, 60), (8.0, 640, 60), (2.0, 160, 3))
"""Of orders, payments and rates: rows a second, rows, keys."""
