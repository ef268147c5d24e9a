"""Windows, watermarks and joins in time over several epochs, against plain Python."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from operators_kit import DDL, NOON, SCHEMA, RunApp, made, rows_of
from pyspark.sql import functions as F
from spark_kit import Bag, Row, bag, by_epoch, parquet_epochs

from springtide import App, agg, sinks, sources
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.engine.durability.spark_log import entry, planned_us
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport
from springtide.metrics.totals import Totals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SIZE, LATE = timedelta(seconds=10), timedelta(seconds=5)


def test_rows_that_run_ahead_of_the_clock_are_counted_and_kept_out(run_app: RunApp, tmp_path: Path) -> None:
    """By the clock that Spark logged with the epoch: repeated, the epoch decides the same."""
    app, out, clocks = App("ahead"), sinks.memory(), []
    spec = sources.generator(1000, keys=2, limit=30, start_s=0.0, max_rows_per_epoch=10)

    def poisoned(rows: "DataFrame") -> "DataFrame":
        far = F.expr("CASE WHEN id = 3 THEN TIMESTAMP'9999-01-01' ELSE due_time END")
        return rows.select("id", "key", far.alias("at"))

    rows = app.source("rows", spec).transform("poisoned", poisoned).key_by("key")
    rows.window("at", "1 minute").aggregate("counts", n=agg.count()).sink("out", out)
    reports = run_app(app, checkpoint=str(tmp_path / "checkpoint"))
    store = current(LocalStore(tmp_path / "checkpoint"))
    for report in reports:
        clocks.append(planned_us(entry(store, Epoch(report.epoch))))
        assert clocks[-1] is not None, "Spark logs when it has planned an epoch"
        assert abs(clocks[-1] / 1e6 - report.ended_at) < 3600
    assert [report.operators[0].ahead_rows for report in reports] == [1, 0, 0]
    assert sum(report.operators[0].late_rows for report in reports) == 0, "though one row was of the year 9999"
    totals = Totals.of(reports)
    assert totals.count("ahead_rows_total") == 1


def _watermarks(epochs: list[list[Row]], late: timedelta) -> list[datetime]:
    """By epoch: the newest time of all earlier ones, less what may be late."""
    times = [max((r["at"] for rows in epochs[:e] for r in rows if r["at"]), default=None) for e in range(len(epochs))]
    return [datetime.min.replace(tzinfo=UTC) if newest is None else newest - late for newest in times]


def _windows(epochs: list[list[Row]], slide: timedelta) -> tuple[dict[int, Bag], dict[int, Bag], int]:
    """Updates, final rows, and how many rows were late for all their windows."""
    state: dict[tuple[Any, datetime], list[Row]] = defaultdict(list)
    updates, finals, late_rows = {}, {}, 0

    def result(key: tuple[Any, datetime], final: bool) -> Row:
        ids = [row["id"] for row in state[key]]
        window = {"window_start": key[1], "window_end": key[1] + SIZE, "final": final}
        return {"k": key[0], "c": len(ids), "total": sum(ids), **window}

    for epoch, (rows, watermark) in enumerate(zip(epochs, _watermarks(epochs, LATE), strict=True)):
        touched = set()
        for row in (r for r in rows if r["at"]):
            start = NOON - timedelta(seconds=60)
            starts = []
            while start <= row["at"]:
                if start + SIZE > row["at"] and start + SIZE > watermark:
                    starts.append(start)
                start += slide
            late_rows += not starts
            for start in starts:
                state[row["k"], start].append(row)
                touched.add((row["k"], start))
        updates[epoch] = bag(result(key, False) for key in touched)
        over = [key for key in state if key[1] + SIZE <= watermark]
        finals[epoch] = bag(result(key, True) for key in over)
        for key in over:
            del state[key]
    return updates, {e: rows for e, rows in finals.items() if rows}, late_rows


def _within(epochs: list[list[Row]], span: timedelta) -> tuple[dict[int, Bag], int]:
    """The first row of each key, once in a span of event time; and how many rows were late."""
    seen: dict[Any, datetime] = {}
    result, late_rows = {}, 0
    for epoch, (rows, watermark) in enumerate(zip(epochs, _watermarks(epochs, span), strict=True)):
        seen = {key: at for key, at in seen.items() if at > watermark}
        fresh = []
        for row in (r for r in rows if r["at"]):
            if row["at"] <= watermark:
                late_rows += 1
            elif row["k"] not in seen:
                seen[row["k"]] = row["at"]
                fresh.append(row)
        result[epoch] = bag(fresh)
    return {e: rows for e, rows in result.items() if rows}, late_rows


@pytest.fixture
def tokyo(spark: "SparkSession") -> Iterator[None]:
    """A user's session far from UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("tokyo")
def test_event_time(run_app: RunApp, tmp_path: Path) -> None:
    """Tumbling and sliding windows with late rows, their final rows, and dedupe within a span."""
    epochs = made(3)
    app = App("event-time")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    out = {name: sinks.memory() for name in ("tumbling", "final", "filtered", "sliding", "within")}
    keyed = rows.key_by("k")
    tumbling = keyed.window("at", SIZE, late=LATE).aggregate("tumbling", c=agg.count(), total=agg.sum("id"))
    tumbling.sink("all", out["tumbling"])
    tumbling.sink("final", out["final"], mode="final")
    tumbling.filter("several", "c > 1").sink("several-final", out["filtered"], mode="final")
    sliding = keyed.window("at", "10 seconds", "4 seconds", late="5 seconds")
    sliding.aggregate("sliding", c=agg.count(), total=agg.sum("id")).sink("slid", out["sliding"])
    keyed.dedupe("within", column="at", within="15 seconds").sink("deduped", out["within"])
    reports = run_app(app)

    epochs = [*epochs, []]  # The last is for what the others have made due.
    updates, finals, late_rows = _windows(epochs, SIZE)
    assert late_rows > 0
    assert len(finals) > 1
    assert by_epoch(out["tumbling"].epochs) == {e: updates[e] + finals.get(e, bag([])) for e in updates}
    assert max(finals) == len(epochs) - 1
    assert by_epoch(out["final"].epochs) == finals
    several = {e: bag(r for r in rows_of(rows) if r["c"] > 1) for e, rows in finals.items()}
    assert by_epoch(out["filtered"].epochs) == {e: rows for e, rows in several.items() if rows}
    assert _sum(reports, "tumbling", "late_rows") == late_rows
    updates, finals, late_rows = _windows(epochs, timedelta(seconds=4))
    assert by_epoch(out["sliding"].epochs) == {e: updates[e] + finals.get(e, bag([])) for e in updates}
    assert _sum(reports, "sliding", "late_rows") == late_rows
    first, late_rows = _within(epochs, timedelta(seconds=15))
    assert by_epoch(out["within"].epochs) == first
    assert _sum(reports, "within", "late_rows") == late_rows
    without_time = sum(row["at"] is None for rows in epochs for row in rows)
    assert without_time > 0
    assert _sum(reports, "tumbling", "malformed_rows") == without_time


@pytest.mark.usefixtures("tokyo")
def test_times_without_a_zone_stay_so(run_app: RunApp, tmp_path: Path) -> None:
    """Through windows, deduplication and a map, in a session whose zone is not UTC."""
    wall = [datetime(2024, 5, 1, 12, 0, second) for second in (1, 8, 31)]
    epochs = [[{"k": "a", "at": at} for at in wall], [{"k": "a", "at": datetime(2024, 5, 1, 12, 1)}]]
    schema = pa.schema([("k", pa.string()), ("at", pa.timestamp("us"))])
    app, out = App("wall-time"), {name: sinks.memory() for name in ("windows", "within", "mapped")}
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, schema, "k STRING, at TIMESTAMP_NTZ"))
    rows.key_by("k").window("at", SIZE).aggregate("windows", c=agg.count()).sink("w", out["windows"])
    rows.key_by("at").dedupe("within", column="at", within="15 seconds").sink("d", out["within"])
    rows.map_batches("mapped", lambda table: table, schema).sink("m", out["mapped"])
    run_app(app)
    start = datetime(2024, 5, 1, 12)
    counted = {(start, 2, False), (start + 3 * SIZE, 1, False), (start + 6 * SIZE, 1, False)}
    counted |= {(start, 2, True), (start + 3 * SIZE, 1, True)}
    assert {(r["window_start"], r["c"], r["final"]) for r in out["windows"].rows()} == counted
    assert {r["window_end"] - r["window_start"] for r in out["windows"].rows()} == {SIZE}
    for name in ("within", "mapped"):
        assert bag(out[name].rows()) == bag(row for rows in epochs for row in rows)
    for name, column in (("windows", "window_start"), ("windows", "window_end"), ("within", "at"), ("mapped", "at")):
        assert {t.schema.field(column).type for t in out[name].epochs.values()} == {pa.timestamp("us")}


def _sum(reports: list[EpochReport], step: str, field: str) -> int:
    return sum(getattr(o, field) for r in reports for o in r.operators if o.step == step)
