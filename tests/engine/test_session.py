"""Settings of a session that we make, without making one."""

import os
from pathlib import Path

import pytest

from springtide.engine.session import executor_environment, manager_settings


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
