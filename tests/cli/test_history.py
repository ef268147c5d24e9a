"""What an app has decided, told from its checkpoint alone."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore
from springtide.cli.main import cli
from springtide.control.adapt.ledger import Ledger
from springtide.control.migration_log import Account, MigrationLog
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures
from springtide.policies.decision import Hold, Scale
from springtide.policies.past import AppState, Entry

SEEN = {
    "window_s": 15.2,
    "epochs": 12,
    "sources": {"rows": {"rate": 900.0, "lag_rows": 40}},
    "operators": {"count": {"instances": 1, "rows_per_s": 450.0, "true_rate": 980.5, "busy": 0.92}},
    "workers": {"0": {"cpu": 0.61, "queue_rows": 40}},
}


def springtide(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "160", "TERM": "dumb"})


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    store = LocalStore(tmp_path)
    AppRecord("clicks", 16, {}).write(store)
    ledger = Ledger(store, "ds2", "progressive")
    before, after = AppState(1, 450.0, 900.0, 12.0, 40.0), AppState(3, 905.0, 900.0, 1.0)
    more = Scale(3, "count needs 2.6 instances")
    ledger.add(Entry(1, 1_700_000_000.0, more, more, gauge=before), SEEN)
    ledger.update(
        1,
        {"copying": 14.0, "moving": 16.5, "done": 17.0},
        ended_at=1_700_000_017.0,
        outcome="done",
        pause_s=0.31,
        after=after,
        helped=True,
    )
    course = Course("progressive", 1_700_000_000.5, 1_700_000_017.0)
    measures = MigrationMeasures(1.25, 0.0, 16.5, 0.5, None, 3.0, 0)
    MigrationLog(store).put(Account(1, "from 1 to 3 workers", "done", "", course, measures))
    ledger.add(Entry(2, 1_700_000_100.0, Scale(1, "idle"), Hold("too soon"), ("3 workers wanted 20 s ago",)), SEEN)
    return tmp_path


def test_history(clicks: Path) -> None:
    result = springtide("history", str(clicks))
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert any("scale to 3 done 17.00 0.31 yes" in line for line in lines)
    assert any("held: scale to 1 vetoed" in line for line in lines)
    assert "vetoed" not in springtide("history", str(clicks), "--changes").output
    found = [json.loads(line) for line in springtide("history", str(clicks), "--json").output.splitlines()]
    assert [record["number"] for record in found] == [1, 2]


def test_explain(clicks: Path) -> None:
    result = springtide("explain", str(clicks))
    assert result.exit_code == 0, result.output
    for told in (
        "wanted    scale to 3: count needs 2.6 instances",
        "copying after 14.00 s",
        "measured  restore 1.25 s, drain 0.00 s, rebalance 16.50 s, catch-up 0.50 s",
        "steady 3.00 s, 0 rows replayed",
        "pause 0.31 s, helped: yes",
        "seen in 15.20 s and 12 epochs",
        "before and after",
    ):
        assert told in result.output
    second = springtide("explain", str(clicks), "2").output
    assert "vetoed    3 workers wanted 20 s ago" in second
    assert json.loads(springtide("explain", str(clicks), "1", "--json").output)["helped"] is True


def test_a_decision_that_is_not_there(clicks: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    result = springtide("explain", str(clicks), "7")
    assert (result.exit_code, "has no decision 7: the last is 2" in result.output) == (1, True)
    empty = tmp_path_factory.mktemp("calm")
    AppRecord("calm", 16, {}).write(LocalStore(empty))
    result = springtide("explain", str(empty))
    assert (result.exit_code, "has decided nothing by itself yet" in result.output) == (1, True)
    assert springtide("history", str(empty)).output == "nothing was decided yet\n"
