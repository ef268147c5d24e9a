"""Conditions as SQL text and rows as results, on Spark: the workers get them, and so do sinks and steps that follow."""

from pathlib import Path

import pytest
from operators_kit import DDL, SCHEMA, RunApp, grouped, made, so_far
from spark_kit import Row, by_epoch, parquet_epochs

from springtide import App, agg, sinks
from springtide.dataflow.errors import BadGraph, StepFailed

pytestmark = pytest.mark.spark


def expected(key: str | None, rows: list[Row]) -> Row:
    counted = [r for r in rows if r["n"] is not None and r["n"] >= 3 and r["v"] is not None]
    ordered = sorted((r for r in rows if r["n"] is not None), key=lambda r: (-r["n"], r["id"]))
    return {
        "k": key,
        "large": len(counted),
        "total": sum(r["v"] for r in counted) if counted else None,
        "best": [{"id": r["id"], "n": r["n"]} for r in ordered[:2]],
    }


def test_conditions_and_rows_over_a_restart(run_app: RunApp, tmp_path: Path) -> None:
    epochs = made(7)
    files = parquet_epochs(tmp_path / "rows", epochs, SCHEMA, DDL)
    where = "n BETWEEN 3 AND 99 AND v IS NOT NULL"
    collected, flat = sinks.memory(), sinks.memory()

    def app() -> App:
        found = App("conditions")
        wanted = {
            "large": agg.count(where=where),
            "total": agg.sum("v", where=where),
            "best": agg.top_rows(2, by=("n", "-id"), columns=("id", "n")),
        }
        rows = found.source("rows", files).key_by("k").aggregate("step", **wanted)
        rows.sink("out", collected)
        rows.transform("flat", lambda df: df.selectExpr("k", "inline(best)")).sink("flat-rows", flat)
        return found

    places = {"checkpoint": str(tmp_path / "checkpoint"), "local": str(tmp_path / "local")}
    run_app(app(), until="epochs=2", **places)
    run_app(app(), **places)
    assert by_epoch(collected.epochs) == so_far(epochs, expected)
    last = max(flat.epochs)
    touched = grouped(epochs[last])
    seen = grouped([row for epoch in epochs for row in epoch])
    assert sorted(map(repr, flat.epochs[last].to_pylist())) == sorted(
        repr({"k": key, **row}) for key in touched for row in expected(key, seen[key])["best"]
    )


def test_columns_that_are_not_there_are_told_with_the_step(run_app: RunApp, tmp_path: Path) -> None:
    files = parquet_epochs(tmp_path / "rows", [], SCHEMA, DDL)
    app, other = App("app"), App("other")
    app.source("rows", files).key_by("k").aggregate("step", n=agg.count(where="m = 1")).sink("out", sinks.noop())
    with pytest.raises(StepFailed, match=r"step 'step' failed .*agg\.count where='m = 1': expected columns among"):
        run_app(app)
    best = agg.top_rows(1, by="n", columns="m")
    other.source("rows", files).key_by("k").aggregate("step", best=best).sink("out", sinks.noop())
    with pytest.raises(BadGraph, match=r"step 'step': expected best= an aggregate of a column among .* got 'm'"):
        run_app(other)
