"""Drivers killed at every failpoint, one after the other on one checkpoint: nothing is lost or doubled."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from chaos_kit import (
    CLUSTER_POINTS,
    INTERVAL_POINTS,
    WORKER_POINTS,
    drive,
    flip_bit,
    head,
    local_blocks,
    state_blocks,
)
from chaos_oracle import batch_counts, expected, published

from springtide import faults

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 16


@dataclass(frozen=True)
class Life:
    """One driver process: what is armed, the point it dies at, and the last epoch committed by then."""

    armed: str
    dies_at: str
    committed: int


FEW = (Life("manifest.after=kill@3", "manifest.after", 3),)
EVERY_POINT = (
    Life("epoch.start=kill@2", "epoch.start", 1),
    Life("records.collected=kill@3", "records.collected", 2),
    Life("manifest.put=kill@3", "manifest.put", 2),
    Life("manifest.after=kill@3", "manifest.after", 3),
    # What the lives before wrote for epoch 3 in vain is garbage now, and this one dies in the sweep at its start.
    Life("gc.delete=kill@3", "gc.delete", 3),
    Life("claim.put=kill", "claim.put", 3),
    Life("generation.copied=kill", "generation.copied", 3),
    # Epoch 3 is published at last; fault 21: the manifest of epoch 4 lands although its write seems to fail.
    Life("manifest.put=late-oserror@4,publish.before=kill@4", "publish.before", 4),
    Life("manifest.landed=kill@5", "manifest.landed", 5),
    Life("publish.staged=kill@5", "publish.staged", 5),
    Life("publish.after=kill@5", "publish.after", 5),
    Life("report.after=kill@6", "report.after", 6),
)


def test_every_failpoint_of_a_driver_is_tried() -> None:
    elsewhere = WORKER_POINTS | CLUSTER_POINTS | INTERVAL_POINTS
    assert {life.dies_at for life in EVERY_POINT} == set(faults.POINTS) - elsewhere


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lives", [FEW, pytest.param(EVERY_POINT, marks=pytest.mark.slow)], ids=["few", "every point"])
def test_failpoints_in_turn(tmp_path: Path, lives: tuple[Life, ...]) -> None:
    """Faults 3, 4 and 5; fault 16 between any two lives."""
    oracle = expected(EPOCHS)
    for life in lives:
        ended = drive(tmp_path, life.armed, epochs=EPOCHS)
        told = f"{life.armed}: {ended}"
        assert ended.killed, told
        assert life.dies_at in ended.fired, told
        manifest = head(tmp_path / "checkpoint")
        assert manifest is not None, told
        assert manifest.epoch == life.committed, told
        visible = published(tmp_path)
        assert not visible.beyond(oracle), told
        assert max(visible.epochs()) <= life.committed, told
        # The state that the next driver finds in its local directory is damaged.
        for ref in state_blocks(manifest, "count"):
            if (local := local_blocks(tmp_path) / ref.name).exists():
                flip_bit(local)
    ended = drive(tmp_path, "", epochs=EPOCHS)
    assert ended.code == 0, str(ended)
    found = published(tmp_path)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
    assert found.last_counts() == batch_counts(EPOCHS)
