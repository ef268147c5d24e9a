"""What queries got, read from a checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore
from springtide.cli.main import cli
from springtide.control.shed.log import ShedDecision, ShedLog
from springtide.engine.lifecycle.report_log import ReportLog
from springtide.metrics.report import EpochReport, Phases, QueryReport


def report(epoch: int, *queries: QueryReport) -> EpochReport:
    return EpochReport("shop", epoch, float(epoch), 1, False, 0, 0, None, None, 0, Phases(), queries=queries)


@pytest.fixture
def checkpoint(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path)
    AppRecord("shop", 128, {}, ("rows",)).write(store)
    return store


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["queries", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_epochs_are_added_up(checkpoint: LocalStore, tmp_path: Path) -> None:
    log = ReportLog(checkpoint)
    first = QueryReport("low", 100, 40, 58, 2, 40 / 98, 1, 0.3)
    log.append(report(0, first, QueryReport("high", 100, 98, 0, 2, 1.0, 7)))
    second = report(1, QueryReport("low", 100, 90, 10, 0, 0.9, 1, 0.3), QueryReport("high", 100, 100, 0, 0, 1.0, 7))
    log.append(second)
    log.append(replace(second, replayed=True))
    log.append(replace(second, replayed=True, published_again=True, queries=()))
    log = ShedLog(checkpoint)
    log.note(ShedDecision(5.0, {"low": 0.9, "high": 1.0}, {}, ("low keeps 90 % of its rows",)))
    log.write()
    high, low, decision = (json.loads(line) for line in sorted(run(str(tmp_path), "--json").splitlines(), key=_rank))
    assert (low["offered"], low["processed"], low["shed"], low["dead_letters"]) == (200, 130, 68, 2)
    assert low["accuracy"] == pytest.approx(130 / 198)
    assert (high["priority"], high["accuracy"]) == (7, 1.0)
    assert decision["reasons"] == ["low keeps 90 % of its rows"]
    shown = run(str(tmp_path))
    assert shown.index("high") < shown.index("low")
    assert "low keeps 90 % of its rows" in shown


def _rank(line: str) -> tuple[bool, int]:
    fields = json.loads(line)
    return "reasons" in fields, -fields.get("priority", 0)


def test_an_app_that_sheds_nothing_says_so(checkpoint: LocalStore, tmp_path: Path) -> None:
    ReportLog(checkpoint).append(report(0))
    assert "with_minimum_accuracy" in run(str(tmp_path))
