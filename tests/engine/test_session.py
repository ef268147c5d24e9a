"""Settings of a session that we make, without making one."""

import os
from pathlib import Path

import pytest

from springtide.confidential import hide, is_secret
from springtide.engine.spark import session
from springtide.engine.spark.own_machine import LONGEST_FOR_SOCKETS, SECRET
from springtide.engine.spark.session import (
    DRIVER_OPTIONS,
    EXECUTOR_OPTIONS,
    SessionConfig,
    WrongJvm,
    box,
    executor_environment,
    manager_settings,
    session_settings,
)
from springtide.scratch import scratch

SOCKETS = "spark.python.unix.domain.socket.dir"


def test_a_standalone_master_is_told_how_many_and_then_left_to_us() -> None:
    settings = manager_settings("spark://a:7077,b:7077", 3)
    assert settings["spark.dynamicAllocation.enabled"] == "true"
    assert settings["spark.dynamicAllocation.minExecutors"] == settings["spark.dynamicAllocation.maxExecutors"] == "3"
    assert "spark.cores.max" not in settings, "it would keep the app from growing"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://a:6443"])
def test_other_managers_heed_the_number_of_instances(master: str) -> None:
    assert manager_settings(master, 3) == {"spark.executor.cores": "2", "spark.executor.instances": "3"}


def test_executors_find_modules_wherever_they_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "/opt/app"]))
    assert executor_environment()["spark.executorEnv.PYTHONPATH"] == f"{tmp_path / 'src'}{os.pathsep}/opt/app"
    monkeypatch.delenv("PYTHONPATH")
    assert "spark.executorEnv.PYTHONPATH" not in executor_environment()


@pytest.mark.parametrize("master", ["local[2]", box(2)])
def test_spark_on_this_machine_is_closed_and_each_run_has_a_secret(master: str, tmp_path: Path) -> None:
    one, other = (session_settings(SessionConfig(master), tmp_path) for _ in range(2))
    assert one["spark.driver.host"] == one["spark.driver.bindAddress"] == "127.0.0.1"
    assert one["spark.authenticate"] == "true"
    assert len(one[SECRET]) >= 64
    assert one[SECRET] != other[SECRET]
    assert is_secret(SECRET), "else it would be on a command line"
    assert hide(one[SECRET]) == "…"
    assert one["spark.ui.enabled"] == "false"
    assert one["spark.local.dir"] == str(tmp_path)


@pytest.mark.parametrize("master", ["spark://a:7077", "yarn", "k8s://https://a:6443"])
def test_a_cluster_keeps_its_own_settings(master: str) -> None:
    settings = session_settings(SessionConfig(master, workers=2), None)
    ours = ("spark.authenticate", "spark.driver.host", "spark.driver.bindAddress", "spark.local.dir")
    assert not [name for name in settings if name.startswith(ours)]
    assert "tmpdir" not in settings[DRIVER_OPTIONS]


def test_what_the_user_sets_wins(tmp_path: Path) -> None:
    own = {"spark.driver.bindAddress": "0.0.0.0", "spark.ui.enabled": "true", EXECUTOR_OPTIONS: "-Xss2m"}
    settings = session_settings(SessionConfig(box(2), own), tmp_path)
    assert {name: settings[name] for name in own} | {EXECUTOR_OPTIONS: "-Xss2m"} == own
    assert settings[EXECUTOR_OPTIONS].endswith(" -Xss2m")


def test_sockets_lie_where_their_paths_are_not_too_long(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * LONGEST_FOR_SOCKETS)
    assert len(session_settings(SessionConfig(), deep)[SOCKETS]) <= LONGEST_FOR_SOCKETS
    with scratch("test", Path("/tmp")) as short:
        assert session_settings(SessionConfig(), short)[SOCKETS] == str(short)


@pytest.mark.parametrize(
    ("name", "master", "fits"),
    [
        ("127.0.0.1", box(2), True),
        ("127.0.0.1", "local[2]", True),
        ("host", "spark://a:7077", True),
        ("host", "local[2]", True),
        ("host", box(2), False),
        ("127.0.0.1", "spark://a:7077", False),
    ],
)
def test_a_jvm_that_was_started_for_another_purpose(
    name: str, master: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "own_name", lambda: name)
    monkeypatch.setattr(session, "jvm_variable", {"SPARK_LOCAL_IP": name if name == "127.0.0.1" else None}.get)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    if fits:
        session._check_jvm(master)
    else:
        with pytest.raises(WrongJvm, match=r"Run the app in a process of its own"):
            session._check_jvm(master)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    if not master.startswith("local"):
        session._check_jvm(master)
