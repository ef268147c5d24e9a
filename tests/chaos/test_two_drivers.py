"""Fault 24: a second driver on a checkpoint is refused before it writes anything."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chaos_app import build
from chaos_kit import DEADLINE_S, drive, listing, wait_until
from chaos_oracle import expected, published

from springtide.blocks.errors import CheckpointInUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 2


def test_a_second_driver_is_refused_before_it_writes(spark: "SparkSession", tmp_path: Path) -> None:
    idle = threading.Event()
    app, checkpoint = build(tmp_path, EPOCHS), tmp_path / "checkpoint"
    options = {"checkpoint": str(checkpoint), "local": str(tmp_path / "local")}
    first = app.start(spark, **options, on_epoch=lambda report: idle.set() if report.epoch == EPOCHS - 1 else None)
    try:
        assert idle.wait(DEADLINE_S)
        wait_until((checkpoint / "spark" / "commits" / f"{EPOCHS - 1}").exists, "Spark logs the last epoch")
        before = listing(tmp_path)
        with pytest.raises(CheckpointInUse, match=r"in use by process \d+ on .*stop that driver first"):
            app.start(spark, **options)
        assert listing(tmp_path) == before
        second = drive(tmp_path, "", epochs=EPOCHS + 1)
        assert second.code == 1, str(second)
        assert "CheckpointInUse: checkpoint " in second.output
        after = listing(tmp_path)
        after.pop("markers", None)
        assert after == before
    finally:
        first.stop()
    third = drive(tmp_path, "", epochs=EPOCHS + 1)
    assert third.code == 0, str(third)
    oracle, found = expected(EPOCHS + 1), published(tmp_path)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
