"""How an app was moved, told from its checkpoint alone."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from springtide.blocks.record import AppRecord
from springtide.blocks.store import LocalStore
from springtide.cli.main import cli
from springtide.control.migration_log import Account, MigrationLog
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures


def springtide(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "200", "TERM": "dumb"})


def moved(checkpoint: Path) -> Account:
    store = LocalStore(checkpoint)
    AppRecord("clicks", 16, {}).write(store)
    course = Course("drain", 1_700_000_000.0, 1_700_000_012.0, {"prepare": 1_700_000_000.0}, last_begun=7)
    measures = MigrationMeasures(14.25, 1.5, 9.0, None, None, 20.0, 0)
    account = Account(1, "from 2 to 4 workers", "done", "", course, measures)
    MigrationLog(store).put(account)
    return account


def test_each_has_a_line_with_its_measures(tmp_path: Path) -> None:
    moved(tmp_path)
    shown = springtide("migrations", str(tmp_path)).stdout
    line = next(line for line in shown.splitlines() if "drain" in line and "workers" in line)
    for part in ("from 2 to 4 workers", "done", "14.25", "1.50", "9.00", "20.00"):
        assert part in line


def test_as_json_all_of_it_can_be_read_back(tmp_path: Path) -> None:
    account = moved(tmp_path)
    (line,) = springtide("migrations", str(tmp_path), "--json").stdout.splitlines()
    assert Account.from_json(json.loads(line)) == account


def test_an_app_that_was_never_moved(tmp_path: Path) -> None:
    AppRecord("clicks", 16, {}).write(LocalStore(tmp_path))
    assert springtide("migrations", str(tmp_path)).stdout == "nothing was moved yet\n"
