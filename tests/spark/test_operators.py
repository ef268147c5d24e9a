"""Every operator over several epochs, against plain Python."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from spark_kit import Bag, Row, bag, by_epoch, parquet_epochs

from springtide import App, Groups, Reduced, agg, sinks, sources
from springtide.dataflow.generator import GeneratorSpec
from springtide.dataflow.rates import constant
from springtide.metrics.report import EpochReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("v", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
DDL = "id BIGINT, k STRING, n BIGINT, v DOUBLE, at TIMESTAMP"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EPOCHS = 4
EPOCH_ROWS = 120


def made(seed: int) -> list[list[Row]]:
    """Rows by epoch, with nulls everywhere and event times out of order."""
    random_ = random.Random(seed)

    def row(epoch: int, number: int) -> Row:
        second = epoch * 20 + random_.uniform(-15, 20)
        return {
            "id": epoch * EPOCH_ROWS + number,
            "k": random_.choice([None, "", *"abcdefgh"]),
            "n": random_.choice([None, *range(-3, 12)]),
            "v": random_.choice([None, *(x / 4 for x in range(-8, 40))]),
            "at": None if random_.random() < 0.02 else NOON + timedelta(seconds=round(second, 3)),
        }

    return [[row(epoch, number) for number in range(EPOCH_ROWS)] for epoch in range(EPOCHS)]


def grouped(rows: list[Row], column: str = "k") -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def so_far(epochs: list[list[Row]], of: Callable[[Any, list[Row]], Row]) -> dict[int, Bag]:
    """By epoch: a row for each key that came, made from all its rows up to then."""
    seen: list[Row] = []
    result = {}
    for epoch, rows in enumerate(epochs):
        seen = seen + rows
        keys = {row["k"] for row in rows}
        result[epoch] = bag(of(key, of_key) for key, of_key in grouped(seen).items() if key in keys)
    return result


def test_stateless_steps_and_branches(run_app: RunApp, tmp_path: Path) -> None:
    epochs = made(1)
    app = App("stateless")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    out = {name: sinks.memory() for name in ("transform", "filter", "map", "union", "plain")}

    def tens(table: pa.Table) -> pa.Table:
        return pa.table({"tens": pc.multiply(table["n"], 10), "id": table["id"]})

    few = rows.filter("few", "n < 4")
    few.sink("filtered", out["filter"])
    rows.transform("letters", lambda df: df.selectExpr("id", "upper(k) AS k").where("k >= 'C'")).sink(
        "transformed", out["transform"]
    )
    rows.map_batches("tens", tens, {"id": int, "tens": int}).sink("mapped", out["map"])
    rows.filter("low", "n < 2").union("twice", few, rows.filter("high", "n > 9")).sink("united", out["union"])
    rows.sink("plain", out["plain"])
    reports = run_app(app)

    def where(condition: Callable[[Row], bool]) -> dict[int, Bag]:
        return {e: bag(r for r in rows if condition(r)) for e, rows in enumerate(epochs)}

    assert by_epoch(out["plain"].epochs) == where(lambda r: True)
    assert by_epoch(out["filter"].epochs) == where(lambda r: r["n"] is not None and r["n"] < 4)
    upper = [[{"id": r["id"], "k": (r["k"] or "").upper()} for r in rows] for rows in epochs]
    letters = [[r for r in rows if r["k"] >= "C"] for rows in upper]
    assert by_epoch(out["transform"].epochs) == {e: bag(rows) for e, rows in enumerate(letters)}
    mapped = [[{"id": r["id"], "tens": None if r["n"] is None else r["n"] * 10} for r in rows] for rows in epochs]
    assert by_epoch(out["map"].epochs) == {e: bag(rows) for e, rows in enumerate(mapped)}
    numbers = [[r for r in rows if r["n"] is not None] for rows in epochs]
    assert by_epoch(out["union"].epochs) == {
        e: bag([r for r in rows if r["n"] < 2] + [r for r in rows if r["n"] < 4] + [r for r in rows if r["n"] > 9])
        for e, rows in enumerate(numbers)
    }
    assert [r.epoch for r in reports] == list(range(EPOCHS))
    assert [r.rows_in for r in reports] == [EPOCH_ROWS] * EPOCHS


def test_keyed_steps(run_app: RunApp, tmp_path: Path) -> None:
    """Every aggregate, both kinds of reducer, dedupe, keyed steps in a row, and a diamond, in one app."""
    epochs = made(2)
    app = App("keyed", slices=32)
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    names = ("all", "best", "reduce", "batches", "dedupe", "second", "large", "diamond", "mixed", "coalesced")
    out = {name: sinks.memory() for name in names}
    keyed = rows.key_by("k")

    keyed.aggregate(
        "all", rows=agg.count(), values=agg.count("v"), total=agg.sum("n"), weight=agg.sum("v"), least=agg.min("n"),
        greatest=agg.max("v"), first=agg.min("at"), mean=agg.mean("v"), top=agg.top_k("n", 3), kinds=agg.distinct("n"),
    ).sink("all-out", out["all"])  # fmt: skip

    def runs(key: Row, rows: list[Row], state: Row | None) -> tuple[Row | None, list[Row]]:
        seen = (state["seen"] if state else 0) + len(rows)
        ids = " ".join(str(row["id"]) for row in rows)
        output = {"k": key["k"], "seen": seen, "ids": ids}
        return (None if seen >= 30 else {"seen": seen}), [output]

    keyed.reduce("runs", runs, state={"seen": int}, output={"k": str, "seen": int, "ids": str}).sink(
        "reduced", out["reduce"]
    )

    def totals(groups: Groups) -> Reduced:
        fresh = np.add.reduceat(groups.rows["id"].to_numpy(), groups.starts)
        total = fresh + groups.state["total"].fill_null(0).to_numpy()
        return Reduced(pa.table({"total": total}), pa.table({"k": groups.keys["k"], "total": total}))

    keyed.reduce_batches("totals", totals, state={"total": int}, output={"k": str, "total": int}).sink(
        "batches", out["batches"]
    )
    rows.key_by("k", "n").dedupe("pairs").sink("deduped", out["dedupe"])

    counts = keyed.aggregate("counts", c=agg.count())
    counts.filter("large", "c > 20").sink("large-out", out["large"])
    second = counts.transform("bucket", lambda df: df.selectExpr("c % 4 AS bucket", "c"))
    second.key_by("bucket").aggregate("second", updates=agg.count(), total=agg.sum("c")).sink("twice", out["second"])
    best = keyed.aggregate("best", c=agg.max("n"))
    joined = counts.transform("counts-k", lambda df: df.select("k", "c")).union("both", best)
    joined.key_by("k").aggregate("diamond", parts=agg.count(), total=agg.sum("c")).sink("diamond-out", out["diamond"])
    # Rows straight from the source and rows of a keyed step, in one sink.
    ids = rows.transform("ids", lambda df: df.selectExpr("k", "id AS c"))
    ids.union("mixed", counts).sink("mixed-out", out["mixed"])
    counts.transform("one-part", lambda df: df.coalesce(1)).sink("one-part-out", out["coalesced"])
    best.sink("best-out", out["best"])
    reports = run_app(app, instances=3)

    def numbers(rows: list[Row], column: str) -> list[Any]:
        return [row[column] for row in rows if row[column] is not None]

    def everything(key: Any, rows: list[Row]) -> Row:
        n, v, at = (numbers(rows, column) for column in ("n", "v", "at"))
        return {
            "k": key,
            "rows": len(rows),
            "values": len(v),
            "total": sum(n) if n else None,
            "weight": sum(v) if v else None,
            "least": min(n, default=None),
            "greatest": max(v, default=None),
            "first": min(at, default=None),
            "mean": sum(v) / len(v) if v else None,
            "top": sorted(n, reverse=True)[:3],
            "kinds": len(set(n)),
        }

    assert by_epoch(out["all"].epochs) == so_far(epochs, everything)
    assert by_epoch(out["batches"].epochs) == so_far(
        epochs, lambda key, rows: {"k": key, "total": sum(r["id"] for r in rows)}
    )
    assert by_epoch(out["reduce"].epochs) == _runs_oracle(epochs)
    assert by_epoch(out["dedupe"].epochs) == _first_rows(epochs, ("k", "n"))
    counted = so_far(epochs, lambda key, rows: {"k": key, "c": len(rows)})
    largest = so_far(epochs, lambda key, rows: {"k": key, "c": max(numbers(rows, "n"), default=None)})
    assert by_epoch(out["best"].epochs) == largest
    assert by_epoch(out["coalesced"].epochs) == counted
    assert by_epoch(out["large"].epochs) == {
        e: found for e, rows in counted.items() if (found := bag(r for r in _rows(rows) if r["c"] > 20))
    }
    assert by_epoch(out["second"].epochs) == _second(counted)
    assert by_epoch(out["diamond"].epochs) == _diamond(counted, largest)
    assert by_epoch(out["mixed"].epochs) == {
        e: bag({"k": r["k"], "c": r["id"]} for r in rows) + counted[e] for e, rows in enumerate(epochs)
    }
    by_step = {o.step: o for o in reports[-1].operators}
    assert by_step["counts"].state_rows == len({r["k"] for rows in epochs for r in rows})
    assert len(by_step["counts"].instances) == 3


def _rows(rows: Bag) -> list[Row]:
    return [dict(row) for row in rows.elements()]


def _first_rows(epochs: list[list[Row]], key: tuple[str, ...]) -> dict[int, Bag]:
    """The first row of each key, in the order of the input."""
    seen: set[tuple[Any, ...]] = set()
    result = {}
    for epoch, rows in enumerate(epochs):
        fresh = []
        for row in rows:
            if (of_row := tuple(row[name] for name in key)) not in seen:
                seen.add(of_row)
                fresh.append(row)
        result[epoch] = bag(fresh)
    return {epoch: rows for epoch, rows in result.items() if rows}


def _runs_oracle(epochs: list[list[Row]]) -> dict[int, Bag]:
    """Rows of a key come in the order of the input; a key that reached 30 starts anew."""
    state: dict[Any, int] = {}
    result = {}
    for epoch, rows in enumerate(epochs):
        output = []
        for key, of_key in grouped(rows).items():
            seen = state.pop(key, 0) + len(of_key)
            if seen < 30:
                state[key] = seen
            output.append({"k": key, "seen": seen, "ids": " ".join(str(r["id"]) for r in of_key)})
        result[epoch] = bag(output)
    return result


def _second(counted: dict[int, Bag]) -> dict[int, Bag]:
    """The second keyed step counts what the first one put out."""
    state: dict[int, list[int]] = defaultdict(list)
    result = {}
    for epoch, rows in counted.items():
        for row in _rows(rows):
            state[row["c"] % 4].append(row["c"])
        touched = {row["c"] % 4 for row in _rows(rows)}
        result[epoch] = bag({"bucket": b, "updates": len(state[b]), "total": sum(state[b])} for b in touched)
    return result


def _diamond(left: dict[int, Bag], right: dict[int, Bag]) -> dict[int, Bag]:
    state: dict[Any, list[Any]] = defaultdict(list)
    result = {}
    for epoch in left:
        rows = _rows(left[epoch]) + _rows(right[epoch])
        for row in rows:
            state[row["k"]].append(row["c"])
        result[epoch] = bag(
            {"k": k, "parts": len(state[k]), "total": sum(c for c in state[k] if c is not None)}
            for k in {row["k"] for row in rows}
        )
    return result


SIZE, LATE = timedelta(seconds=10), timedelta(seconds=5)


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

    updates, finals, late_rows = _windows(epochs, SIZE)
    assert late_rows > 0
    assert len(finals) > 1
    assert by_epoch(out["tumbling"].epochs) == {e: updates[e] + finals.get(e, bag([])) for e in updates}
    assert by_epoch(out["final"].epochs) == finals
    several = {e: bag(r for r in _rows(rows) if r["c"] > 1) for e, rows in finals.items()}
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


def _sum(reports: list[EpochReport], step: str, field: str) -> int:
    return sum(getattr(o, field) for r in reports for o in r.operators if o.step == step)


def test_several_sources_in_one_app(run_app: RunApp, tmp_path: Path) -> None:
    """Sources of different kinds and columns share the epochs; a branch may read one or both."""
    epochs = made(4)[:3]
    spec = GeneratorSpec(constant(100), limit=150, keys=9, start_s=1_700_000_000.0, max_rows_per_epoch=50)
    app = App("several")
    files = app.source("files", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    generated = app.source("generated", sources.Generator(spec))
    out = {name: sinks.memory() for name in ("files", "generated", "raw", "both")}
    files.key_by("k").aggregate("by-k", c=agg.count()).sink("files-out", out["files"])
    generated.key_by("key").aggregate("by-key", c=agg.count(), total=agg.sum("id")).sink("gen-out", out["generated"])
    generated.sink("raw", out["raw"])
    numbers = files.transform("numbers", lambda df: df.selectExpr("n AS number").where("n >= 0"))
    both = generated.transform("keys", lambda df: df.selectExpr("key AS number")).union("both", numbers)
    both.key_by("number").aggregate("together", c=agg.count()).sink("both-out", out["both"])
    run_app(app)

    made_rows = spec.rows(0, 150, 1_700_000_000.0).to_pylist()
    assert bag(out["raw"].rows()) == bag(made_rows)
    everything = [row for rows in epochs for row in rows]
    last = {row["k"]: row["c"] for row in out["files"].rows()}
    assert last == {key: len(rows) for key, rows in grouped(everything).items()}
    last = {row["key"]: (row["c"], row["total"]) for row in out["generated"].rows()}
    assert last == {k: (len(rows), sum(r["id"] for r in rows)) for k, rows in grouped(made_rows, "key").items()}
    last = {row["number"]: row["c"] for row in out["both"].rows()}
    expected = [r["key"] for r in made_rows] + [r["n"] for r in everything if r["n"] is not None and r["n"] >= 0]
    assert last == {number: expected.count(number) for number in set(expected)}


def test_a_function_of_each_epoch(run_app: RunApp, tmp_path: Path) -> None:
    """A sink that is a user's function gets each epoch's rows as a DataFrame."""
    epochs = made(5)[:2]
    got: dict[int, Bag] = {}

    def take(frame: Any, epoch: int) -> None:
        got[epoch] = bag(row.asDict() for row in frame.select("k", "c").collect())

    app = App("foreach")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    rows.key_by("k").aggregate("counts", c=agg.count()).sink("each", sinks.foreach_epoch(take))
    run_app(app)
    assert got == so_far(epochs, lambda key, rows: {"k": key, "c": len(rows)})
