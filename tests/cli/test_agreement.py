"""Whoever tells of an epoch tells the same figures: the terminal, `status`, the reports, the API, `/metrics`."""

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from typer.testing import CliRunner

from springtide import App, agg, codec, sinks, sources
from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore
from springtide.cli.main import cli
from springtide.cli.shared.live_view import LineView, TableView
from springtide.control.api.app_controls import RunningControls
from springtide.engine.lifecycle.report_log import ReportLog, last_reports
from springtide.engine.lifecycle.running import Running
from springtide.metrics.epoch_figures import figure, figures
from springtide.metrics.report import EpochReport, OperatorReport, Phases, SourceReport
from springtide.metrics.totals import Totals

EPOCH = EpochReport(
    "clicks",
    1,
    1_700_000_100.0,
    1,
    False,
    1234,
    20,
    40,
    1.5,
    7,
    Phases(plan_s=0.0625, compute_s=1.0, commit_s=0.25, publish_s=0.125, collect_s=0.5),
    (OperatorReport("counts", 617, 20, late_rows=3, state_rows=2345, state_bytes=56_789),),
    sources=(SourceReport("rows", 1234, 40, 1.5),),
    elapsed_s=2.0,
)
BEFORE = replace(EPOCH, epoch=0, ended_at=1_700_000_000.0, rows_in=9, elapsed_s=1.0, sources=())
"""Of an earlier run: between the two, the app did not run."""
SHOWN = {
    "rows_in": "1,234",
    "rows_per_s": "617",
    "epoch_s": "1.94",
    "latency_s": "1.50",
    "lag_rows": "40",
    "state_rows": "2,345",
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A checkpoint with both epochs."""
    store = LocalStore(tmp_path)
    AppRecord("clicks", 128, {}, ("rows",)).write(store)
    log = ReportLog(store)
    log.append(BEFORE)
    log.append(EPOCH)
    return store


def test_the_live_views() -> None:
    line = io.StringIO()
    LineView(Console(file=line, width=200)).epoch(EPOCH)
    words = line.getvalue().replace("state rows", "state_rows").split()
    pairs = {name: words[words.index(word) + 1] for name, word in LINE.items()}
    assert pairs == SHOWN
    table = io.StringIO()
    view = TableView("clicks", Console(file=table, width=120, force_terminal=True, color_system=None))
    with view:
        view.epoch(EPOCH)
    row = next(line for line in table.getvalue().splitlines()[::-1] if line.split()[:1] == ["1"])
    assert row.replace(" s ", " ").split() == ["1", *SHOWN.values()]


LINE = {
    "rows_in": "rows",
    "rows_per_s": "rows/s",
    "epoch_s": "took",
    "latency_s": "latency",
    "lag_rows": "lag",
    "state_rows": "state_rows",
}


def test_status(store: LocalStore, tmp_path: Path) -> None:
    """Whatever ran before, and however many epochs it is asked for."""
    for last in ("1", "10"):
        shown = CliRunner().invoke(cli, ["status", str(tmp_path), "-n", last], env={"COLUMNS": "200", "TERM": "dumb"})
        row = next(line.split() for line in shown.output.splitlines() if line.split()[:1] == ["1"])
        *flow, late, dead = row[3:10]
        assert flow == list(SHOWN.values())[:-1]
        assert (late, dead) == ("3", "7")
        assert row[10:] == ["0.06", "1.00", "0.25", "0.12", "0.50", "2,345", "56.8", "kB"]


def test_reports(store: LocalStore, tmp_path: Path) -> None:
    assert figures(last_reports(store, 1)[0]) == figures(EPOCH)
    lines = CliRunner().invoke(cli, ["status", str(tmp_path), "--json"]).output.splitlines()
    assert json.loads(lines[-1])["figures"] == figures(EPOCH)
    assert codec.loads(EpochReport, lines[-1]) == EPOCH


def test_the_control_api_and_prometheus(store: LocalStore) -> None:
    pool = SimpleNamespace(
        plan=SimpleNamespace(version=1, workers=(), worker=lambda _: None, operators={}),
        state=SimpleNamespace(backup_bytes=lambda: 0),
        roster=SimpleNamespace(ring_order=tuple),
    )
    running = SimpleNamespace(reports=[EPOCH], totals=Totals.of([EPOCH]), pool=pool)
    app = App("clicks")
    app.source("rows", sources.generator(1)).key_by("key").aggregate("counts", n=agg.count()).sink("o", sinks.noop())
    controls = RunningControls("clicks", cast(Running, running), app.graph(), store)
    told = controls.status()
    assert {name: told[name] for name in figures(EPOCH)} == figures(EPOCH)
    assert told["epoch"] == EPOCH.epoch
    exported = _exported(controls.metrics())
    same = {
        "rows_in": "rows_total",
        "rows_out": "output_rows_total",
        "late_rows": "late_rows_total",
        "dead_letters": "dead_letters_total",
        "retries": "epoch_retries_total",
        "epoch_s": "epoch_seconds_sum",
        "latency_s": "latency_seconds_sum",
        "lag_rows": "lag_rows",
        "state_rows": "state_rows",
        "state_bytes": "state_bytes",
    }
    assert {name: exported[f"springtide_{series}"] for name, series in same.items()} == {
        name: figure(name, EPOCH) for name in same
    }


def _exported(text: bytes) -> dict[str, Any]:
    """By name: the only sample."""
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found[sample.name] = sample.value
    return found
