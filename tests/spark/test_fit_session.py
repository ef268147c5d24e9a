"""What a session lacks is told before the first epoch: the workers' Python, the jars for a URL."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from springtide import App, sinks, sources
from springtide.dataflow.errors import StepFailed
from springtide.engine.executors import python_check as worker_check
from springtide.engine.executors.python_check import ask_by_job, check_here
from springtide.engine.executors.worker_python import UnfitPython, driver
from springtide.engine.lifecycle import running
from springtide.engine.lifecycle.file_systems import NoFileSystem
from springtide.engine.spark.internals import hadoop_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def small() -> App:
    app = App("small")
    app.source("rows", sources.generator(100, limit=10, start_s=0.0)).sink("out", sinks.memory())
    return app


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A Python with the standard library alone, and what Spark puts on its path."""
    path = tmp_path / "bare-python"
    # Spark's own modules come by PYTHONPATH, so that has to count; the checkout's must not.
    path.write_text(
        '#!/bin/sh\nPYTHONPATH=$(printf %s "$PYTHONPATH" | tr : "\\n" | grep pyspark | tr "\\n" :)\n'
        f'export PYTHONPATH\nexec {sys.executable} -S "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_an_unfit_python_is_refused_before_anything_is_written(
    spark: "SparkSession", bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    with pytest.raises(UnfitPython, match=f"has no springtide, .*Set PYSPARK_PYTHON to {sys.executable}"):
        small().run(spark, checkpoint=str(tmp_path / "checkpoint"), until="available")
    assert not (tmp_path / "checkpoint").exists()
    assert capfd.readouterr().err == ""


def test_a_session_of_our_own_on_this_python_is_not_asked(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(worker_check, "probe", never)
    check_here(spark)


def test_a_job_asks_workers_that_have_no_springtide(
    spark: "SparkSession", bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is done on other machines. Spark starts the daemon of its own here: ours is a part of Springtide."""
    assert ask_by_job(spark, 2, sys.executable) == [driver()]
    conf = spark.sparkContext._jsc.sc().conf()
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    daemon = conf.get("spark.python.daemon.module")
    conf.set("spark.python.daemon.module", "pyspark.daemon")
    try:
        [found] = ask_by_job(spark, 2, bare)
    finally:
        conf.set("spark.python.daemon.module", daemon)
    assert "springtide" in found.missing


def test_a_job_that_fails_tells_why(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python")
    with pytest.raises(UnfitPython, match='could not run a task: Cannot run program "/no/such/python"'):
        ask_by_job(spark, 1, "/no/such/python")
    assert capfd.readouterr().err == ""


def test_a_checkpoint_that_spark_cannot_open_names_the_jars(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The durable store has its driver, and Spark has not."""
    opened = running.open_store

    def open_store(url: str) -> object:
        store = opened(str(tmp_path))
        store.url = url
        return store

    monkeypatch.setattr(running, "open_store", open_store)
    package = rf"spark\.jars\.packages=org\.apache\.hadoop:hadoop-aws:{hadoop_version(spark)}"
    with pytest.raises(NoFileSystem, match=rf"'s3a://bucket/x': Class .*S3AFileSystem not found\. .*{package}"):
        small().run(spark, checkpoint="s3a://bucket/x", until="available")
    assert not any(tmp_path.iterdir())


def test_a_source_that_spark_cannot_open_names_the_jars(spark: "SparkSession", tmp_path: Path) -> None:
    app = App("files")
    app.source("lines", sources.files("s3a://bucket/lines")).sink("out", sinks.memory())
    with pytest.raises(StepFailed, match=r"step 'lines' failed while opening its source: .*hadoop-aws"):
        app.run(spark, checkpoint=str(tmp_path / "checkpoint"), until="available")
