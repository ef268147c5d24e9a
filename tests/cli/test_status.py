"""What `springtide status` prints, from reports written by hand."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from springtide import codec
from springtide.blocks.record import AppRecord
from springtide.blocks.store import open_store
from springtide.cli.main import cli
from springtide.engine.lifecycle.report_log import ReportLog
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases

NOON = time.mktime((2026, 1, 2, 12, 0, 0, 0, 0, -1))


def report(epoch: int, *, replayed: bool = False, lag: int | None = 40) -> EpochReport:
    """An epoch that took 2 s of wall time for 1000 rows."""
    instances = (
        InstanceReport(0, 500, 10, idle_s=0.5, deserialise_s=0.1, process_s=0.2, serialise_s=0.3, cpu_s=0.7),
        InstanceReport(1, 500, 10, idle_s=0.25, process_s=0.4, cpu_s=0.05),
    )
    operator = OperatorReport("counts", 1000, 20, late_rows=3, state_rows=1234, state_bytes=56_789, instances=instances)
    return EpochReport(
        "clicks",
        epoch,
        NOON + 2 * epoch,
        1,
        replayed,
        1000,
        20,
        lag,
        None if lag is None else 1.5,
        7,
        Phases(plan_s=0.001, compute_s=1.0, commit_s=0.25, publish_s=0.125),
        (operator,),
        elapsed_s=2.0,
    )


def write(checkpoint: Path, *reports: EpochReport) -> None:
    store = open_store(str(checkpoint))
    AppRecord("clicks", 128, {}).write(store)
    log = ReportLog(store)
    for one in reports:
        log.append(one)


def status(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["status", *arguments], env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells(output: str, first: str) -> list[str]:
    """The cells of the line whose first cell is `first`."""
    (line,) = [line for line in output.splitlines() if line.split()[:1] == [first]]
    return line.split()


def test_epochs_and_operators_by_the_apps_name(here: Path) -> None:
    write(here / ".springtide" / "clicks", *(report(e) for e in range(12)))
    result = status("clicks")
    assert result.exit_code == 0, result.output
    line = cells(result.output, "11")
    flow, phases = ["1,000", "500", "1.38", "1.50", "40", "3", "7"], ["0.00", "1.00", "0.25", "0.12", "0.00"]
    assert line == ["11", "2026-01-02", "12:00:22", *flow, *phases, "1,234", "56.8", "kB"]
    operator = cells(result.output, "counts")
    assert operator[1:] == ["2", "1,000", "20", "1.00", "0.75", "0.75", "1,234", "56.8", "kB"]


def test_the_last_ten_epochs_or_as_many_as_asked_for(here: Path) -> None:
    write(here / ".springtide" / "clicks", *(report(e) for e in range(12)))
    shown = [line.split()[0] for line in status("clicks").output.splitlines() if line.strip()[:1].isdigit()]
    assert shown == [str(e) for e in range(2, 12)]
    shown = [line.split()[0] for line in status("clicks", "-n", "2").output.splitlines() if line.strip()[:1].isdigit()]
    assert shown == ["10", "11"]


def test_a_narrow_terminal_gets_two_tables(here: Path) -> None:
    write(here / ".springtide" / "clicks", report(0))
    output = CliRunner().invoke(cli, ["status", "clicks"], env={"COLUMNS": "80", "TERM": "dumb"}).output
    assert {"rows/s", "latency", "letters", "compute", "56.8"} <= set(output.split())
    assert all(len(line) <= 80 for line in output.splitlines())
    assert "…" not in output


def test_by_path_and_by_url(here: Path) -> None:
    write(here / "elsewhere", report(0))
    for place in ("elsewhere", "./elsewhere", str(here / "elsewhere"), f"file://{here}/elsewhere"):
        assert status(place).exit_code == 0, place


def test_json_lines_are_the_reports(here: Path) -> None:
    reports = [report(e) for e in range(3)]
    write(here / ".springtide" / "clicks", *reports)
    lines = status("clicks", "--json", "--last", "2").output.splitlines()
    assert [codec.loads(EpochReport, line) for line in lines] == reports[1:]
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]


def test_what_is_not_known_is_a_dash_and_a_repeated_epoch_has_a_mark(here: Path) -> None:
    write(here / ".springtide" / "clicks", report(0), report(1, replayed=True, lag=None))
    line = cells(status("clicks").output, "1*")
    assert line.count("-") == 2


def test_no_checkpoint_says_where_it_looked(here: Path) -> None:
    result = status("clicks")
    assert result.exit_code == 1
    assert "no checkpoint of 'clicks'" in result.output
    assert str(here / ".springtide" / "clicks") in result.output.replace("\n", "")
    assert not (here / ".springtide").exists(), "looking changes nothing"


def test_an_app_without_epochs(here: Path) -> None:
    write(here / ".springtide" / "clicks")
    result = status("clicks")
    assert result.exit_code == 0
    assert "no epoch yet" in result.output
    assert status("clicks", "--json").output == ""
