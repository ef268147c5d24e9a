"""Drivers and workers are killed at every failpoint, one after the other on one checkpoint; nothing is lost or doubled."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from chaos_kit import drive, flip_bit, head, state_blocks
from chaos_oracle import batch_counts, expected, published

from springtide import faults

EPOCHS = 12
WORKER_POINTS = {"block.put", "block.written", "publish.part"}


@dataclass(frozen=True)
class Life:
    """One driver process: what is armed, the point it dies at, and the last epoch committed by then."""

    armed: str
    dies_at: str
    committed: int
    says: str = ""
    """Part of the error, where a worker dies and the driver has to tell."""


LIVES = (
    Life("epoch.start=kill@1", "epoch.start", 0),
    Life("block.put=oserror@1", "", 0, "no space left on device"),
    Life("block.put=kill@2", "block.put", 1, "Python worker exited unexpectedly"),
    Life("block.put=late-oserror@2", "block.put", 1, "timed out"),
    Life("block.written=kill@2", "block.written", 1, "Python worker exited unexpectedly"),
    Life("records.collected=kill@2", "records.collected", 1),
    Life("manifest.put=kill@2", "manifest.put", 1),
    Life("manifest.after=kill@2", "manifest.after", 2),
    # What the lives before wrote for epoch 2 in vain is garbage now: the sweep at the start finds it.
    Life("gc.delete=kill", "gc.delete", 2),
    Life("claim.put=kill", "claim.put", 2),
    # Epoch 2 is only published now; the manifest of epoch 3 lands though its write fails.
    Life("manifest.put=late-oserror@3,publish.before=kill@3", "publish.before", 3),
    Life("publish.part=kill@3", "publish.part", 3, "Python worker exited unexpectedly"),
    Life("publish.after=kill@3", "publish.after", 3),
    Life("publish.part=kill@4", "publish.part", 4, "Python worker exited unexpectedly"),
    Life("publish.after=kill@5", "publish.after", 5),
    # No orphans are left for the start: this one dies after epoch 6 is published.
    Life("gc.delete=kill", "gc.delete", 6),
)


@pytest.mark.chaos
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_every_failpoint_in_turn(tmp_path: Path) -> None:
    """Faults 3, 4 and 5, and 16, 20 and 21 on the way."""
    assert {life.dies_at for life in LIVES if life.dies_at} == set(faults.POINTS)
    oracle = expected(EPOCHS)
    checkpoint = tmp_path / "checkpoint"
    for number, life in enumerate(LIVES):
        ended = drive(tmp_path, life.armed, epochs=EPOCHS)
        told = f"life {number}, {life.armed}: {ended}"
        assert life.dies_at in {"", *ended.fired}, told
        assert ended.killed if not life.says else ended.code == 1 and life.says in ended.output, told
        manifest = head(checkpoint)
        assert manifest is not None and manifest.epoch == life.committed, told
        visible = published(tmp_path)
        assert not visible.beyond(oracle), told
        assert max(visible.epochs()) <= life.committed, told
        # Fault 16: what the next driver finds of the state in its local directory is damaged.
        for ref in state_blocks(manifest, "count"):
            if (local := tmp_path / "local" / ref.name).exists():
                flip_bit(local)
    ended = drive(tmp_path, "", epochs=EPOCHS)
    assert ended.code == 0, str(ended)
    found = published(tmp_path)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
    assert found.last_counts() == batch_counts(EPOCHS)
