"""Commands that draw do the same without matplotlib, but for the picture, and say how to get it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from springtide.cli.main import cli
from springtide.present.pictures import NO_PICTURE

SCENARIO = """
title = "a small one"
duration_s = 20
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
policies = ["none"]
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["matplotlib"] = None
for room in ("bench", "simulator", "cli", "workloads"):
    package = importlib.import_module(f"springtide.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"springtide.{room}."):
        importlib.import_module(module.name)
"""


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("no_matplotlib")
def test_a_benchmark_runs_without(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "decide", "--quick", "--json", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert NO_PICTURE in done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["bench"] == "decide"
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_matplotlib")
def test_a_simulation_runs_without(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    done = CliRunner().invoke(cli, ["simulate", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert NO_PICTURE in " ".join(done.stdout.split())
    assert not (tmp_path / "out").exists()


def test_a_benchmark_draws_with_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["bench", "decide", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "bench-decide.png").stat().st_size > 5_000
    assert NO_PICTURE not in done.stdout


def test_no_module_needs_matplotlib_to_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
