"""Each check: what it says when all is well and when it is not, with what to do."""

import os
import socket
import sys
import tomllib
from pathlib import Path

import pytest

from springtide.doctor import extras, machine, runtimes, workers
from springtide.doctor.checks import checks, examine
from springtide.doctor.finding import Finding, State, ready
from springtide.java_home import JavaNotFound, JavaProbe
from springtide.testing.database import NoServer

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
GB = 1 << 30
OK, WARNING, MISSING = State.OK, State.WARNING, State.MISSING


def test_only_what_is_needed_and_missing_prevents() -> None:
    optional = [Finding("a", MISSING, "none"), Finding("b", WARNING, "old", needed=True), Finding("c", OK, "1")]
    assert ready(optional)
    assert not ready([*optional, Finding("d", MISSING, "none", needed=True)])


@pytest.mark.parametrize(
    ("version", "state"), [((3, 10, 9), MISSING), ((3, 11, 0), OK), ((3, 13, 2), OK), ((3, 14, 0), WARNING)]
)
def test_python(version: tuple[int, ...], state: State) -> None:
    found = runtimes.python(version)
    assert (found.state, found.needed) == (state, True)
    assert bool(found.remedy) is (state is not OK)


def test_java(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtimes.java().state is OK

    def none() -> Path:
        raise JavaNotFound((JavaProbe("JAVA_HOME", "not set"),))

    monkeypatch.setattr(runtimes, "find_java", none)
    found = runtimes.java()
    assert found.prevents
    assert "JAVA_HOME: not set" in found.found
    assert "springtide[java]" in found.remedy


def test_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtimes.spark({}).state is OK
    (tmp_path / "jars").mkdir()
    empty = runtimes.spark({"SPARK_HOME": str(tmp_path)})
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    other = runtimes.spark({"SPARK_HOME": str(tmp_path)})
    assert empty.prevents
    assert "has no Spark" in empty.found
    assert other.prevents
    assert "has Spark 3.5.1" in other.found
    assert other.remedy == "unset SPARK_HOME"
    monkeypatch.setattr(runtimes, "version", lambda _: "4.2.0")
    assert runtimes.spark({}).prevents


def test_a_spark_home_of_the_same_release_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "version", lambda _: f"{runtimes.SPARK}.7")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{runtimes.SPARK}.7.jar").touch()
    assert runtimes.spark({"SPARK_HOME": str(tmp_path)}).state is OK


def test_the_releases_are_those_of_the_package() -> None:
    assert f"pyspark>={runtimes.SPARK},<4.4" in PROJECT["dependencies"]
    assert PROJECT["requires-python"] == ">={}.{}".format(*runtimes.OLDEST)
    prefix = "Programming Language :: Python :: 3."
    named = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if name.startswith(prefix)]
    assert (named[0], named[-1]) == ("{}.{}".format(*runtimes.OLDEST), "{}.{}".format(*runtimes.NEWEST))


def test_memory_and_cores() -> None:
    assert machine.memory(lambda: 8 * GB).state is OK
    assert "spark.driver.memory" in machine.memory(lambda: 2 * GB).remedy
    assert machine.memory(lambda: None).state is WARNING
    assert machine.processor(lambda: 2.0).state is OK
    assert machine.processor(lambda: 0.5).state is WARNING


def test_disks(tmp_path: Path) -> None:
    def free(left: int) -> Finding:
        return machine.disk("disk", tmp_path, "elsewhere", lambda _: left)

    assert [free(left).state for left in (100 * GB, GB)] == [OK, WARNING]
    assert free(GB).remedy == "elsewhere"
    assert machine.disk("disk", tmp_path / "nowhere", "elsewhere").found.endswith("cannot be written to")
    assert len(machine.disks(tmp_path, tmp_path)) == 2


def test_ports_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.loopback().state is OK
    assert machine.loopback("203.0.113.1").prevents, "an address that is nobody's"

    def unknown(name: str) -> str:
        raise socket.gaierror(f"no {name}")

    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert machine.host_name(lambda _: "127.0.0.1").state is OK
    assert machine.host_name(unknown).prevents
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert machine.host_name(unknown).state is OK


def test_the_workers_python(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("PYSPARK_PYTHON", None)
    assert workers.made_sessions(environment).state is OK
    own = workers.own_sessions(environment)
    assert (own.state, own.needed) == (WARNING, False)
    assert own.found.startswith(f"workers run {bare}, which has no springtide")
    assert own.remedy == f"export PYSPARK_PYTHON={sys.executable}"
    assert workers.made_sessions({**environment, "PYSPARK_PYTHON": str(bare)}).prevents
    assert workers.made_sessions({**environment, "PYSPARK_PYTHON": "/no/python"}).prevents
    assert workers.own_sessions({**environment, "PYSPARK_PYTHON": sys.executable}).state is OK


def test_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = extras.kafka_jars("connector", "sources", tmp_path)
    assert (jars.state, jars.needed, jars.remedy) == (MISSING, False, "springtide kafka fetch")
    assert extras.package("Arrow", "pyarrow", "arrow", "all").state is OK
    none = extras.package("Tide", "no-such-tide", "tide", "ebb")
    assert (none.state, none.remedy) == (MISSING, "pip install 'springtide[tide]'")

    def nowhere() -> Path:
        raise NoServer("none")

    monkeypatch.setattr(extras, "programs", nowhere)
    assert "apt install postgresql" in extras.postgres_server().remedy


def test_a_check_that_fails_is_a_finding() -> None:
    def broken() -> Finding:
        raise LookupError("oh")

    found = examine([broken, runtimes.python])
    assert [one.state for one in found] == [WARNING, OK]
    assert "LookupError: oh" in found[0].found


def test_every_extra_of_the_package_is_looked_at() -> None:
    asked = {one.name for one in examine(checks("1"))}
    assert {"Kafka client", "PostgreSQL client", "S3 driver", "matplotlib", "Java"} <= asked
    known = {"bench", "kafka", "java", "postgres", "s3", "dev"}
    assert set(PROJECT["optional-dependencies"]) == known, "one more extra: let the doctor look at it"
