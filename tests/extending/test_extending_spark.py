"""A source and a sink of somebody else's, in an app that runs on Spark."""

import json
import sys
from pathlib import Path

import pytest
from extending_kit import install

from springtide import App, agg, sinks, sources

pytestmark = pytest.mark.spark


def test_rows_go_from_their_source_to_their_sink(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number that the sink has got is that of one row that the source gave, in as many rows as reports tell."""
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    app = App("theirs")
    ticks = app.source("ticks", sources.ticks(200))
    ticks.key_by("value").aggregate("seen", n=agg.count()).sink("out", sinks.json_lines(str(tmp_path / "out")))
    try:
        reports = app.run(spark, checkpoint=str(tmp_path / "checkpoint"), until="rows=300")
    finally:
        sys.modules.pop("theirs", None)
    lines = [line for path in sorted((tmp_path / "out").iterdir()) for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    assert sorted(row["value"] for row in rows) == list(range(len(rows)))
    assert {row["n"] for row in rows} == {1}
    assert len(rows) == sum(report.rows_in for report in reports) >= 300
