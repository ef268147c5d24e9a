"""Rows that keyed steps hand on as they are, by whichever way they get to the next one's instances."""

from collections import Counter
from pathlib import Path

import pytest
from operators_kit import DDL, SCHEMA, RunApp, made
from spark_kit import parquet_epochs

from springtide import App, agg, sinks
from springtide.engine.epoch import compute as computing

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("instances", "few_rows"), [(1, 20_000), (3, 0)])
def test_what_is_read_from_blocks_is_all_that_was_written(
    run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instances: int, few_rows: int
) -> None:
    monkeypatch.setattr(computing, "FEW_ROWS", few_rows)
    epochs = made(8)
    app = App("ways")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", epochs, SCHEMA, DDL))
    by_n = rows.key_by("n").aggregate("by-n", c=agg.count())
    by_id = rows.filter("known", "n IS NOT NULL").key_by("id").aggregate("by-id", c=agg.count())
    renamed = by_id.transform("small", lambda df: df.selectExpr("id % 5 AS n", "c"))
    sink, mixed = sinks.memory(), sinks.memory()
    by_n.union("twice", by_n).key_by("n").aggregate("chained", seen=agg.count(), sum=agg.sum("c")).sink("out", sink)
    by_n.union("both", renamed).key_by("n").aggregate("mixed", seen=agg.count()).sink("mixed-out", mixed)
    run_app(app, instances=instances)

    so_far: Counter[int | None] = Counter()
    seen: Counter[int | None] = Counter()
    total: Counter[int | None] = Counter()
    beside: Counter[int | None] = Counter()
    for epoch, some in enumerate(epochs):
        so_far.update(row["n"] for row in some)
        touched = {row["n"] for row in some}
        for n in touched:
            seen[n] += 2
            total[n] += 2 * so_far[n]
            beside[n] += 1
        small = [row["id"] % 5 for row in some if row["n"] is not None]
        beside.update(small)
        found = {row["n"]: (row["seen"], row["sum"]) for row in sink.epochs[epoch].to_pylist()}
        assert found == {n: (seen[n], total[n]) for n in touched}
        found = {row["n"]: row["seen"] for row in mixed.epochs[epoch].to_pylist()}
        assert found == {n: beside[n] for n in touched | set(small)}
