"""An app that was stopped leaves no thread behind."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_kit import generator
from waiting import wait_until

from springtide import App, agg, sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OWN = "springtide-"
EPOCHS = 4
AT_WORK = {"claim", "durable_0", "idle-epochs", "job-watch", "shedding", "supervisor"}
"""The threads of an embedded app that may shed, and that makes a durable checkpoint once in a few epochs."""


def ours() -> set[threading.Thread]:
    """The threads of Springtide that run now."""
    return {thread for thread in threading.enumerate() if thread.name.startswith(OWN)}


def names(threads: set[threading.Thread]) -> set[str]:
    return {thread.name.removeprefix(OWN) for thread in threads}


def test_an_app_that_was_stopped_leaves_no_thread(spark: "SparkSession", tmp_path: Path) -> None:
    before = ours()
    app = App("leaves-nothing")
    counts = app.source("rows", generator(EPOCHS)).key_by("key").aggregate("count", n=agg.count())
    counts.sink("out", sinks.memory()).with_minimum_accuracy(0.5)
    running = app.start(spark, checkpoint=str(tmp_path / "checkpoint"), local=str(tmp_path / "local"), durable_every=2)
    try:
        wait_until("its epochs", lambda: len(running.reports) >= EPOCHS, 120, lambda: str(running.reports))
        at_work = ours()
    finally:
        running.stop()
    assert names(at_work) >= AT_WORK, "else there was nothing to end"
    wait_until("its threads to end", lambda: not ours() - before, 60, lambda: ", ".join(sorted(names(ours() - before))))
