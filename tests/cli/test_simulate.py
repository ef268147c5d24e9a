"""`springtide simulate`: tables, a JSON line a run, a picture, errors as plain messages."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from springtide.cli.main import cli

SCENARIO = """
title = "a small one"
duration_s = 60
[[sources]]
name = "lines"
rate = { kind = "constant", rows_per_s = 1000 }
[[operators]]
name = "count"
from = ["lines"]
service_us = 100
[cluster]
workers = 2
[control]
policies = ["none", "ds2"]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return str(path)


def test_a_scenario_runs_under_each_of_its_policies(scenario: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["simulate", scenario, "--json", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["policy"] for run in runs] == ["none", "ds2"]
    for run in runs:
        assert run["offered"] == run["processed"] + run["waiting"]
        assert run["lost"] == run["doubled"] == 0
        assert run["samples"]
    assert (tmp_path / "out" / "simulation-small.png").stat().st_size > 10_000


def test_a_table_has_a_column_for_each_run(scenario: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["simulate", scenario, "--out", str(tmp_path)])
    assert "a small one" in done.stdout
    assert "none" in done.stdout
    assert "doubled" in done.stdout


def test_the_shipped_ones_are_listed() -> None:
    done = CliRunner().invoke(cli, ["simulate", "--list"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    assert "day-of-10000" in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "expected a scenario, or --list"),
        (["--validate"], "goes with --calibrate"),
        (["no-such"], "the scenario: expected a path to a .toml file, or one of"),
        (["floe-recovery", "--calibrate", "no-such-app"], "there is no checkpoint of 'no-such-app'"),
    ],
)
def test_misuse_is_told_in_a_message(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, ["simulate", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code != 0
    assert says in done.output
    assert "Traceback" not in done.output
