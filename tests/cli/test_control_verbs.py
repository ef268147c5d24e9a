"""The verbs that ask a running app, against a fake one behind a real server."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_kit import FakeControls
from rich.console import Console
from typer import Exit
from typer.testing import CliRunner, Result

from springtide.cli.main import cli
from springtide.cli.shared import migration_watch as watching
from springtide.cli.shared.migration_watch import follow
from springtide.cli.verbs.plan import plan_table
from springtide.control.api.protocol import Options
from springtide.control.api.server import ControlServer


def springtide(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watching, "POLL_S", 0.0)
    return tmp_path


@pytest.fixture
def clicks(here: Path) -> Iterator[FakeControls]:
    """An app that runs on its usual checkpoint."""
    controls = FakeControls()
    server = ControlServer(controls, here / ".springtide" / "clicks")
    server.start()
    yield controls
    server.stop()


def test_workers(clicks: FakeControls) -> None:
    result = springtide("workers", "clicks")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["workers", "of", "clicks"] in lines
    assert ["1", "[red]one", "a", "ready", "2", "96", "64", "1.5", "MB"] in lines
    assert ["2", "two", "b", "draining", "2", "32", "64", "1.5", "MB"] in lines
    found = [json.loads(line) for line in springtide("workers", "clicks", "--json").output.splitlines()]
    assert found == clicks.workers()


def test_plan(clicks: FakeControls) -> None:
    result = springtide("plan", "clicks")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["clicks,", "plan", "3", "on", "2", "workers"] in lines
    assert ["counts", "1", "0-95", "-"] in lines
    assert ["counts", "2", "96-127", "0-63"] in lines
    assert json.loads(springtide("plan", "clicks", "--json").output) == clicks.plan()


def test_a_long_list_of_slices_wraps_and_loses_nothing() -> None:
    scattered = [str(s) for s in range(0, 128, 2)]
    operators = {"counts": {"owners": {"1": ",".join(scattered)}, "replicas": {}}}
    screen = io.StringIO()
    table = plan_table("clicks", {"version": 3, "workers": [{"id": "1"}], "operators": operators})
    Console(file=screen, width=60).print(table)
    assert all(len(line) <= 60 for line in screen.getvalue().splitlines())
    assert set(scattered) <= set(screen.getvalue().replace(",", " ").split())


def test_scale_waits_until_it_is_done(clicks: FakeControls) -> None:
    result = springtide("scale", "clicks", "--workers", "3")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "migration 1 (progressive) has started; to cancel it: springtide cancel-migration clicks",
        "migration 1 done: 32 of 32 slices moved, 32.0 kB copied",
    ]
    assert clicks.effects == [("scale", 3, "progressive")]


def test_scale_without_waiting(clicks: FakeControls) -> None:
    clicks.moves = False
    result = springtide("scale", "clicks", "--workers", "3", "--strategy", "lazy", "--no-wait")
    assert (result.exit_code, len(result.output.splitlines())) == (0, 1)
    assert clicks.effects == [("scale", 3, "lazy")]
    again = springtide("scale", "clicks", "--workers", "4")
    assert again.exit_code == 1
    assert "migration 1 is starting, and there is one at a time" in again.output


def test_json_is_the_last_that_was_seen_and_nothing_else(clicks: FakeControls) -> None:
    result = springtide("scale", "clicks", "--workers", "3", "--json")
    assert (result.exit_code, json.loads(result.output)) == (0, clicks.current)
    clicks.moves = False
    result = springtide("scale", "clicks", "--workers", "2", "--json", "--no-wait")
    assert (result.exit_code, json.loads(result.output)["state"]) == (0, "starting")


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_a_migration_that_is_not_done_is_a_failure(clicks: FakeControls, outcome: str) -> None:
    clicks.outcome = outcome
    result = springtide("scale", "clicks", "--workers", "3")
    assert result.exit_code == 1
    assert f"migration 1 {outcome}: " in result.output
    assert springtide("scale", "clicks", "--workers", "3", "--json").exit_code == 1


def test_how_slices_move(clicks: FakeControls) -> None:
    how = ("--slices-an-epoch", "4", "--hottest-first")
    assert springtide("scale", "clicks", "--workers", "3", *how).exit_code == 0
    assert springtide("move", "clicks", "--operator", "counts", "--slices", "3", "--to", "2", *how).exit_code == 0
    assert clicks.effects == [
        ("scale", 3, "progressive", Options(4, hottest_first=True)),
        ("move", "counts", "3", "2", "progressive", Options(4, hottest_first=True)),
    ]


def test_scaling_by_force(clicks: FakeControls) -> None:
    assert springtide("scale", "clicks", "--workers", "3", "--force").exit_code == 0
    assert clicks.effects == [("scale", 3, "progressive", Options(force=True))]


def test_move(clicks: FakeControls) -> None:
    result = springtide("move", "clicks", "--operator", "counts", "--slices", "3-9,12", "--to", "2")
    assert result.exit_code == 0, result.output
    assert clicks.effects == [("move", "counts", "3-9,12", "2", "progressive")]


def test_move_to_an_unknown_worker_and_of_odd_slices(clicks: FakeControls) -> None:
    result = springtide("move", "clicks", "--operator", "counts", "--slices", "3-9", "--to", "9")
    assert (result.exit_code, result.output) == (1, "there is no worker '9': the workers are 1, 2\n")
    result = springtide("move", "clicks", "--operator", "counts", "--slices", "9-3", "--to", "2")
    assert result.exit_code == 1
    assert "'slices' is \"9-3\"" in result.output
    assert clicks.effects == []


def test_cancel(clicks: FakeControls) -> None:
    result = springtide("cancel-migration", "clicks")
    assert (result.exit_code, result.output) == (1, "no migration is under way: there is nothing to cancel\n")
    clicks.scale(3, "lazy")
    result = springtide("cancel-migration", "clicks")
    assert (result.exit_code, result.output) == (0, "migration 1 cancelled: 0 of 32 slices moved, 0 B copied\n")
    assert json.loads(springtide("cancel-migration", "clicks", "--json").output)["state"] == "cancelled"


def test_adapt(clicks: FakeControls) -> None:
    result = springtide("adapt", "clicks", "--policy", "otd", "--maximum", "4", "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("clicks adapts by otd, 1 to 4 workers, as a dry run; springtide history clicks ")
    assert clicks.effects == [("adapt", "otd", 1, 4)]
    assert json.loads(springtide("adapt", "clicks", "--json").output)["policy"] == "ds2"
    result = springtide("adapt", "clicks", "--policy", "ds3")
    assert (result.exit_code, "expected a policy of" in result.output) == (1, True)
    assert springtide("adapt", "clicks", "--off").exit_code == 1


VERBS = (
    ("workers", "clicks"),
    ("plan", "clicks"),
    ("scale", "clicks", "--workers", "2"),
    ("move", "clicks", "--operator", "counts", "--slices", "3", "--to", "1"),
    ("cancel-migration", "clicks"),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb[0]))
def test_no_running_app(here: Path, verb: tuple[str, ...]) -> None:
    result = springtide(*verb)
    assert result.exit_code == 1
    assert "no running app can be reached through .springtide/clicks: there is no control.json in it" in result.output
    assert not (here / ".springtide").exists(), "looking changes nothing"


def test_another_checkpoint_and_another_app(here: Path) -> None:
    controls = FakeControls()
    server = ControlServer(controls, here / "elsewhere")
    server.start()
    try:
        for place in ("elsewhere", str(here / "elsewhere"), f"file://{here}/elsewhere"):
            assert springtide("plan", "clicks", "--checkpoint", place).exit_code == 0
        other = springtide("scale", "other", "--workers", "2", "--checkpoint", "elsewhere")
        assert other.exit_code == 1
        assert "the app on elsewhere is 'clicks', not 'other'" in other.output
        said = springtide("scale", "clicks", "--workers", "2", "--checkpoint", "elsewhere").output
        assert "to cancel it: springtide cancel-migration clicks --checkpoint elsewhere" in said
        assert controls.effects == [("scale", 2, "progressive")]
    finally:
        server.stop()


@pytest.mark.parametrize("verb", ["plan", "status", "history"])
@pytest.mark.parametrize("app", ["a.b", "", "a b"])
def test_an_odd_name_is_misuse(here: Path, verb: str, app: str) -> None:
    result = springtide(verb, app)
    assert result.exit_code == 2
    assert "is not a valid name" in result.output


def test_a_checkpoints_path_does_for_a_name(here: Path) -> None:
    server = ControlServer(FakeControls(), here / "elsewhere")
    server.start()
    try:
        assert springtide("plan", f"{here}/elsewhere").exit_code == 0
        assert springtide("plan", "./elsewhere").exit_code == 0
    finally:
        server.stop()


def test_misuse_of_options(here: Path) -> None:
    for arguments in (["--workers", "0"], ["--workers", "x"], [], ["--workers", "2", "--strategy", "stop"]):
        assert springtide("scale", "clicks", *arguments).exit_code == 2


def test_on_a_terminal_a_bar_moves() -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=120)
    controls = FakeControls()
    pauses: list[float] = []
    follow(
        controls, controls.scale(3, "lazy"), "cancel!", wait=True, as_json=False, terminal=terminal, pause=pauses.append
    )
    assert len(pauses) == 2
    assert "100%" in screen.getvalue()
    assert "migration 1 done" in screen.getvalue()


def test_ctrl_c_stops_watching_and_not_the_migration(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    controls = FakeControls()
    with pytest.raises(Exit) as ended:
        follow(controls, controls.scale(3, "lazy"), "cancel!", wait=True, as_json=True, pause=interrupt)
    assert ended.value.exit_code == 130
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "stopped watching; the migration goes on. To cancel it: cancel!\n")
    assert controls.effects == [("scale", 3, "lazy")]


def test_a_migration_whose_end_was_missed() -> None:
    controls = FakeControls()
    screen = io.StringIO()
    started = controls.scale(3, "lazy")
    controls.scale(4, "lazy")
    with pytest.raises(Exit) as ended:
        follow(
            controls, started, "cancel!", wait=True, as_json=False, terminal=Console(file=screen), pause=lambda _: None
        )
    assert ended.value.exit_code == 1
    assert "its outcome is no longer known" in screen.getvalue().replace("\n", " ")
