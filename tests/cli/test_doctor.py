"""`springtide doctor`, as a person and as a script reads it."""

import json

import pytest
from typer.testing import CliRunner

from springtide.cli.main import cli
from springtide.cli.verbs import doctor
from springtide.doctor.finding import Finding, State

LONG = "an explanation that goes on and on " * 6
OPTIONAL = Finding("Kafka connector", State.MISSING, LONG, "springtide kafka fetch")
NEEDED = Finding("Java", State.MISSING, "JAVA_HOME: not set", "pip install 'springtide[java]'", needed=True)
GOOD = Finding("Python", State.OK, "3.12.1", needed=True)


def ask(monkeypatch: pytest.MonkeyPatch, findings: list[Finding], *options: str) -> tuple[int, str]:
    monkeypatch.setattr(doctor, "examine", lambda _: findings)
    done = CliRunner().invoke(cli, ["doctor", *options], env={"COLUMNS": "80"})
    return done.exit_code, done.stdout


def test_what_only_some_apps_take_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = ask(monkeypatch, [GOOD, OPTIONAL])
    assert code == 0
    assert "Ready" in said
    assert "-> springtide kafka fetch" in said


def test_what_every_app_needs_does(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = ask(monkeypatch, [GOOD, NEEDED, OPTIONAL])
    assert code == 1
    assert "Not ready: no app runs without Java." in said
    assert "-> pip install 'springtide[java]'" in said


def test_it_is_readable_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = ask(monkeypatch, [GOOD, NEEDED, OPTIONAL])
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in said
    words = " ".join(said.replace("missing", "").replace(OPTIONAL.name, "").split())
    assert " ".join(LONG.split()) in words, "whole, over several lines"


def test_a_script_gets_json(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = ask(monkeypatch, [GOOD, NEEDED], "--json")
    told = json.loads(said)
    assert (code, told["ready"]) == (1, False)
    assert told["findings"][1] == {
        "name": "Java",
        "state": "missing",
        "found": "JAVA_HOME: not set",
        "remedy": "pip install 'springtide[java]'",
        "needed": True,
    }


def test_this_machine_is_ready() -> None:
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 0, done.output
