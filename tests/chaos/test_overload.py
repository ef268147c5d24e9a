"""More load than machine, for minutes: nothing is unaccounted for, nobody falls below its minimum, and it ends."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from waiting import wait_until

from springtide import App, Groups, Reduced, rates, sinks, sources
from springtide.control.economy import SHARED
from springtide.metrics.report import EpochReport, QueryReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
CALM, OVERLOAD_S, ROW_S = 150.0, 90.0, 0.0025
"""Two steps of 2.5 ms a row on two cores: 400 rows a second keep them busy."""


def test_five_times_the_load_for_minutes(spark: "SparkSession", tmp_path: Path) -> None:
    def slow(groups: Groups) -> Reduced:
        """Takes its time over every row, and keeps none."""
        time.sleep(groups.rows.num_rows * ROW_S)
        state = pa.table({"n": pa.array([0] * len(groups), pa.int64())})
        return Reduced(state, pa.table({"key": groups.keys["key"], "n": state["n"]}))

    app = App("overload")
    profile = rates.step([(0, CALM), (40, 5 * CALM), (40 + OVERLOAD_S, CALM)])
    rows = app.source("rows", sources.generator(profile, keys=50)).key_by("key")
    for name, minimum, priority in (("low", 0.1, 0), ("high", 0.3, 5)):
        step = rows.reduce_batches(f"{name}-step", slow, state={"n": int}, output={"key": int, "n": int})
        step.sink(name, sinks.noop()).with_minimum_accuracy(minimum).with_priority(priority)
    seen: list[EpochReport] = []
    running = app.start(spark, checkpoint=str(tmp_path / "cp"), instances=2, on_epoch=seen.append)

    def since_s() -> float:
        assert running.active, running.query.exception()
        return 0.0 if not seen else seen[-1].ended_at - seen[0].ended_at

    try:
        wait_until("the overload to end", lambda: since_s() > 40 + OVERLOAD_S, 300)
        calm = len(seen)
        wait_until("what waited to drain", lambda: (seen[-1].lag_rows or 0) < 2 * CALM, 120)
        wait_until("all rows again", lambda: all(q.accuracy == 1 for q in seen[-1].queries), 120)
    finally:
        running.stop()
    assert all(q.offered == q.processed + q.shed + q.dead_letters for r in seen for q in r.queries)
    assert sum(r.rows_in for r in seen) == sum(r.queries[0].offered for r in seen)
    assert any(q.shed for r in seen for q in r.queries), "there was too much"
    cycles: dict[tuple[str, int], list[QueryReport]] = {}
    for report in seen[:calm]:
        for found in report.queries:
            cycles.setdefault((found.query, int(report.ended_at // SHARED.config.cycle_s)), []).append(found)
    for (query, cycle), some in cycles.items():
        processed, offered = sum(q.processed for q in some), sum(q.offered for q in some)
        assert processed >= some[0].minimum_accuracy * offered, f"{query} in cycle {cycle}"
