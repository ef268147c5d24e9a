"""The workers' Python: what it tells of itself, why it is unfit, and what the error says. Nothing here starts Spark."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import springtide
from springtide.engine.executors.python_check import on_this_machine
from springtide.engine.executors.worker_python import UnfitPython, WorkerPython, driver, probe

DRIVER = WorkerPython("/env/bin/python", "3.12.4", (), "1.2.0", "here")


def script(path: Path, *lines: str) -> str:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def test_this_python_is_fit_for_itself() -> None:
    found = probe(sys.executable, os.environ)
    assert found == driver()
    assert (found.executable, found.springtide, found.missing) == (sys.executable, springtide.__version__, ())
    found.check()


def test_a_python_without_packages_says_which_it_lacks(tmp_path: Path) -> None:
    bare = script(tmp_path / "bare", f'exec {sys.executable} -I -S "$@"')
    found = probe(bare, os.environ)
    assert found.missing == ("springtide", "pyarrow", "numpy", "pandas", "fsspec")
    with pytest.raises(UnfitPython, match=f"has no springtide, pyarrow.* Set PYSPARK_PYTHON to {sys.executable}"):
        found.check()


def test_a_module_on_the_path_that_spark_gives_is_found(tmp_path: Path) -> None:
    bare = script(tmp_path / "bare", f'exec {sys.executable} -S "$@"')
    (tmp_path / "springtide").mkdir()
    (tmp_path / "springtide" / "__init__.py").write_text('__version__ = "0.0.7"\nraise SystemError("not imported")\n')
    found = probe(bare, {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert found.springtide == "0.0.7"
    assert "springtide" not in found.missing


@pytest.mark.parametrize(
    ("worker", "fault"),
    [
        (DRIVER, None),
        (replace(DRIVER, version="3.12.9", executable="/other"), None),
        (replace(DRIVER, version="3.11.4"), "is Python 3.11.4 where the driver's is 3.12.4"),
        (replace(DRIVER, missing=("springtide", "numpy"), springtide=""), "has no springtide, numpy"),
        (replace(DRIVER, springtide="1.1.0"), "has springtide 1.1.0 where the driver has 1.2.0"),
    ],
)
def test_why_it_is_unfit(worker: WorkerPython, fault: str | None) -> None:
    found = worker.fault_for(DRIVER)
    assert found == fault or (found and fault and found.startswith(fault))


def test_one_that_is_not_there() -> None:
    with pytest.raises(UnfitPython, match="run /no/such/python, which is not there"):
        probe("/no/such/python", os.environ)


def test_one_that_does_not_answer(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "echo 'wrong architecture' >&2", "exit 126")
    with pytest.raises(UnfitPython, match="ended with 126 and said 'wrong architecture'"):
        probe(broken, os.environ)


def test_on_other_machines_the_host_is_named() -> None:
    with pytest.raises(UnfitPython, match=r"workers on node-7 run .*on every machine"):
        replace(DRIVER, version="3.5.0", host="node-7").check(elsewhere=True)


@pytest.mark.parametrize(
    ("master", "here"),
    [("local", True), ("local[2]", True), ("local-cluster[2,1,9]", True), ("spark://h:7077", False), ("yarn", False)],
)
def test_which_masters_are_on_this_machine(master: str, here: bool) -> None:
    assert on_this_machine(master) is here
