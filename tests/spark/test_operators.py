"""Every operator over several epochs, against plain Python."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from operators_kit import DDL, EPOCH_ROWS, EPOCHS, SCHEMA, RunApp, grouped, made, rows_of, so_far
from spark_kit import Bag, Row, bag, by_epoch, parquet_epochs

from springtide import App, Groups, Reduced, agg, sinks, sources
from springtide.connectors.generator.rates import constant
from springtide.connectors.generator.rows import GeneratorSpec

pytestmark = pytest.mark.spark


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
        "all",
        rows=agg.count(),
        values=agg.count("v"),
        total=agg.sum("n"),
        weight=agg.sum("v"),
        least=agg.min("n"),
        greatest=agg.max("v"),
        first=agg.min("at"),
        mean=agg.mean("v"),
        top=agg.top_k("n", 3),
        kinds=agg.distinct("n"),
    ).sink("all-out", out["all"])

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
        e: found for e, rows in counted.items() if (found := bag(r for r in rows_of(rows) if r["c"] > 20))
    }
    assert by_epoch(out["second"].epochs) == _second(counted)
    assert by_epoch(out["diamond"].epochs) == _diamond(counted, largest)
    assert by_epoch(out["mixed"].epochs) == {
        e: bag({"k": r["k"], "c": r["id"]} for r in rows) + counted[e] for e, rows in enumerate(epochs)
    }
    by_step = {o.step: o for o in reports[-1].operators}
    assert by_step["counts"].state_rows == len({r["k"] for rows in epochs for r in rows})
    assert len(by_step["counts"].instances) == 3


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
        for row in rows_of(rows):
            state[row["c"] % 4].append(row["c"])
        touched = {row["c"] % 4 for row in rows_of(rows)}
        result[epoch] = bag({"bucket": b, "updates": len(state[b]), "total": sum(state[b])} for b in touched)
    return result


def _diamond(left: dict[int, Bag], right: dict[int, Bag]) -> dict[int, Bag]:
    state: dict[Any, list[Any]] = defaultdict(list)
    result = {}
    for epoch in left:
        rows = rows_of(left[epoch]) + rows_of(right[epoch])
        for row in rows:
            state[row["k"]].append(row["c"])
        result[epoch] = bag(
            {"k": k, "parts": len(state[k]), "total": sum(c for c in state[k] if c is not None)}
            for k in {row["k"] for row in rows}
        )
    return result


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
