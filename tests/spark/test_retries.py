"""Task attempts that fail once they wrote their blocks, and twins that come late: only what a manifest names counts."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chaos_app import build
from chaos_kit import drive, head, manifests, quiet
from chaos_oracle import expected, published

from springtide.blocks.block import BlockRef
from springtide.blocks.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.chaos]
EPOCHS = 3


@pytest.mark.slow
def test_a_retried_task_counts_once(spark: "SparkSession", tmp_path: Path) -> None:
    """Faults 7 and 8. The first attempt dies once its block is written, and the second one's is taken."""
    ended = drive(tmp_path, "block.written=once", epochs=EPOCHS, master="local[2,4]")
    assert ended.code == 0, str(ended)
    assert ended.fired == {"block.written"}
    _check(tmp_path, EPOCHS)
    checkpoint = tmp_path / "checkpoint"
    orphans = _stored(checkpoint) - _named(checkpoint)
    assert orphans, "the block of the failed attempt"

    # A twin that finishes after its epoch is committed: the same rows under a name of its own.
    manifest = head(checkpoint)
    assert manifest is not None
    twin = manifest.operators["count"].runs[-1]
    late = _twin_of(twin)
    shutil.copy(checkpoint / twin.path, checkpoint / "blocks" / late)

    build(tmp_path, EPOCHS + 1).run(spark, checkpoint=str(checkpoint), local=str(tmp_path / "new"), until="available")
    _check(tmp_path, EPOCHS + 1)
    assert not (orphans | {late}) & _stored(checkpoint), "collected at the next start"


def _twin_of(block: BlockRef) -> str:
    *same, attempt, suffix = block.name.split(".")
    return ".".join([*same, attempt[::-1], suffix])


def _stored(checkpoint: Path) -> set[str]:
    return {path.name for path in (checkpoint / "blocks").iterdir()}


def _named(checkpoint: Path) -> set[str]:
    """The blocks that the last two manifests name."""
    return set().union(*(manifest.blocks() for manifest in manifests(checkpoint)))


def _check(root: Path, epochs: int) -> None:
    oracle, found = expected(epochs, quiet=quiet(LocalStore(root / "checkpoint"))), published(root)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
