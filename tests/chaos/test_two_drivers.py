"""Fault 24: a second driver on a checkpoint is refused before it writes anything; a late one, by its sinks."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chaos_app import build
from chaos_kit import Site, drive, listing
from chaos_oracle import expected, published

from springtide.blocks.errors import CheckpointInUse, TakenOver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 2


@pytest.mark.slow
def test_a_second_driver_is_refused_before_it_writes(spark: "SparkSession", tmp_path: Path) -> None:
    app = build(tmp_path, EPOCHS)
    options = {"checkpoint": str(tmp_path / "checkpoint"), "local": str(tmp_path / "local")}
    first = app.start(spark, **options)
    try:
        first.query.processAllAvailable()
        before = listing(tmp_path)
        with pytest.raises(CheckpointInUse, match=r"in use by process \d+ on .*stop that driver first"):
            app.start(spark, **options)
        assert listing(tmp_path) == before
        second = drive(tmp_path, "", epochs=EPOCHS + 1)
        assert second.code == 1, str(second)
        assert "CheckpointInUse: checkpoint " in second.output
        assert listing(tmp_path) == before
    finally:
        first.stop()
    app.run(spark, **options, until="available")
    oracle, found = expected(EPOCHS), published(tmp_path)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)


def test_a_sink_that_knows_a_newer_driver_ends_the_app_and_nothing_changes(site: Site) -> None:
    site.run(1)
    before = listing(site.root / "raw")
    newer = site.root / "raw" / "_springtide" / "generation-000000099"
    newer.touch()
    with pytest.raises(TakenOver, match=r"generation 2\) was taken over by the driver of generation 99"):
        site.run(2)
    newer.unlink()
    assert listing(site.root / "raw") == before
