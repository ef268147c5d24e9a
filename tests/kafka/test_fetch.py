"""Fetching Kafka's jars: where they go, what is checked, what is said. Ivy is a script here but for one test."""

import hashlib
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from springtide.cli.main import cli
from springtide.connectors.kafka import fetch as fetching
from springtide.connectors.kafka import jars
from springtide.connectors.kafka.fetch import FetchFailed, fetch
from springtide.connectors.kafka.jars import PLACE, Jar, JarsMissing, missing, pinned, place

CONTENT = "a jar"
ONE = Jar("connector", "org.example", "one", "1.0", hashlib.sha256(CONTENT.encode()).hexdigest())
BRING = """#!/bin/sh
while [ $# -gt 1 ]; do
    case $1 in -cache) cache=$2 ;; -retrieve) out=$(dirname "$2") ;; esac
    shift
done
mkdir -p "$cache/org.example/one/jars"
printf '%s' '{content}' | tee "$cache/org.example/one/jars/one-1.0.jar" > "$out/one-1.0.jar"
"""


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that stands for Java with Ivy; one jar is wanted, and it brings it."""
    java = tmp_path / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(BRING.format(content=CONTENT))
    java.chmod(0o755)
    monkeypatch.setattr(fetching, "find_java", lambda: java.parents[1])
    monkeypatch.setattr(jars, "pinned", lambda use: (ONE,) if use == "connector" else ())
    return java


def package(root: Path) -> Path:
    return root / "springtide"


def test_a_checkout_keeps_them_beside_its_project_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert place({}, package(tmp_path / "src")) == tmp_path / ".kafka"


def test_an_installed_package_keeps_them_with_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = package(tmp_path / "lib" / "site-packages")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    share = tmp_path / "home" / ".local" / "share" / "springtide" / "kafka"
    assert place({}, installed) == share
    assert place({"XDG_DATA_HOME": "not/absolute"}, installed) == share
    assert place({"XDG_DATA_HOME": "/data"}, installed) == Path("/data/springtide/kafka")


@pytest.mark.parametrize("root", ["src", "lib/site-packages"])
def test_the_variable_comes_first(tmp_path: Path, root: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert place({PLACE: "/jars", "XDG_DATA_HOME": "/data"}, package(tmp_path / root)) == Path("/jars")


@pytest.mark.usefixtures("ivy")
def test_what_is_missing_comes_and_what_is_there_is_left_alone(tmp_path: Path) -> None:
    told: list[int] = []
    assert fetch("connector", tmp_path / "to", told.append) == 1
    assert told[-1] == 1
    assert sorted(path.name for path in (tmp_path / "to").rglob("*")) == ["connector", "one-1.0.jar"]
    assert fetch("connector", tmp_path / "to") == 0


def test_a_jar_that_is_another_is_not_put_in_place(ivy: Path, tmp_path: Path) -> None:
    ivy.write_text(BRING.format(content="something else"))
    with pytest.raises(JarsMissing, match=r"what Ivy fetched, and found no good copy of one-1\.0\.jar"):
        fetch("connector", tmp_path / "to")
    assert not any((tmp_path / "to" / "connector").iterdir())


def test_a_failure_tells_what_ivy_said_and_what_to_look_at(ivy: Path, tmp_path: Path) -> None:
    ivy.write_text("#!/bin/sh\necho 'UNRESOLVED DEPENDENCY: one'\nexit 3\n")
    with pytest.raises(FetchFailed, match=r"(?s)ended with 3.*UNRESOLVED DEPENDENCY: one.*proxyHost"):
        fetch("connector", tmp_path / "to")


@pytest.mark.usefixtures("ivy")
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FetchFailed, match=r"could not write to .*file.*--to DIR"):
        fetch("connector", tmp_path / "file")


@pytest.mark.usefixtures("ivy")
def test_the_verb_tells_how_apps_find_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path / "usual"))
    elsewhere = CliRunner().invoke(cli, ["kafka", "fetch", "--to", str(tmp_path / "to")])
    assert elsewhere.exit_code == 0, elsewhere.output
    assert f"export {PLACE}={tmp_path / 'to'}" in elsewhere.stdout
    usual = CliRunner().invoke(cli, ["kafka", "fetch"])
    assert "1 jars fetched" in usual.stdout
    assert "export" not in usual.stdout
    listed = CliRunner().invoke(cli, ["kafka", "jars"])
    assert listed.stdout.strip() == str(tmp_path / "usual" / "connector" / "one-1.0.jar")


def test_jars_that_are_not_there_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    listed = CliRunner().invoke(cli, ["kafka", "jars"])
    assert listed.exit_code == 1
    assert "run `springtide kafka fetch`" in listed.stderr


@pytest.mark.slow
def test_ivy_brings_what_is_missing(tmp_path: Path) -> None:
    """From Maven Central, so this takes a network."""
    shutil.copytree(place(), tmp_path, dirs_exist_ok=True, ignore=lambda _, names: [n for n in names if n[0] == "."])
    gone, damaged = (tmp_path / "connector" / jar.file for jar in pinned("connector")[:2])
    gone.unlink()
    damaged.write_bytes(b"not a jar")
    assert fetch("connector", tmp_path) == 2
    assert not missing("connector", tmp_path)
