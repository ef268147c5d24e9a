"""Every verb against no app, a starting one, a running one and a stopped one, on a terminal of 80 columns."""

import contextlib
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_process import APP, AppProcess
from typer.testing import CliRunner
from waiting import wait_until

from springtide.cli.main import cli
from springtide.control.api.presence import Presence

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

READING = [
    "status tide",
    "history tide",
    "migrations tide",
    "queries tide",
    "fsck tide",
    "status ./.springtide/tide",
]
"""Of any app that has ever run."""
CONTROL = [
    "workers tide",
    "plan tide",
    "scale tide --workers 2",
    "move tide --operator counts --slices 0-3 --to 0",
    "adapt tide --dry-run",
    "adapt tide --off",
    "cancel-migration tide",
]
"""Of one that runs."""
IDLE = {"cancel-migration tide": "no migration"}
"""What a running app refuses when there is nothing to do, and what it says then."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("verbs")
    (place / "app.py").write_text(APP.format(rate=500, limit=None))
    with contextlib.chdir(place):
        yield place


def springtide(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, shlex.split(command), env={"COLUMNS": "80", "TERM": "dumb"})
    assert "Traceback" not in done.output
    assert "a fault in Springtide" not in done.output
    assert "…" not in done.stdout, f"something is cut:\n{done.output}"
    tables = [line for line in done.stdout.splitlines() if re.search(r"\d  +\d", line)]
    assert all(len(line) <= 80 for line in tables), done.output
    return done.exit_code, done.output


def test_from_no_app_to_a_stopped_one(place: Path) -> None:
    for command in [*READING, "explain tide"]:
        assert springtide(command) == (1, _anything("there is no checkpoint of"))
    for command in CONTROL:
        assert springtide(command) == (1, _anything("no running app can be reached"))
    with AppProcess(place, "--workers", "2") as app:
        wait_until("a presence", lambda: Presence.read(place / ".springtide/tide"), 60.0, lambda: app.said)
        for command in [*READING, *CONTROL]:
            assert springtide(command) == (1, _anything(r"'tide' is starting, \d+ s so far, now: Spark"))
        app.until(r"^epoch [3-9] ")
        for command in [*CONTROL, *READING, "workers ./.springtide/tide"]:
            code, said = springtide(command)
            if command in IDLE:
                assert (code, said) == (1, _anything(IDLE[command]))
            else:
                assert code == 0, f"{command}: {said}\n{app.said}"
        assert "counts" in springtide("plan tide")[1]
        app.send(signal.SIGINT, group=False)
        assert app.ended() == 0, app.said
    for command in READING:
        assert springtide(command)[0] == 0
    for command in CONTROL:
        assert springtide(command) == (1, _anything("no running app can be reached"))


class _anything(str):
    """Equal to every text that matches it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return re.search(self, re.sub(r"\s+", " ", str(other))) is not None

    __hash__ = str.__hash__
