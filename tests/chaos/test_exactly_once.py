"""Drivers and workers killed at every failpoint, one after the other on one checkpoint: nothing is lost or doubled."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from chaos_kit import drive, flip_bit, head, state_blocks
from chaos_oracle import batch_counts, expected, published

from springtide import faults

EPOCHS = 12
WORKER_DIED = "Python worker exited unexpectedly"


@dataclass(frozen=True)
class Life:
    """One driver process: what is armed, the point it dies at, and the last epoch committed by then."""

    armed: str
    dies_at: str
    committed: int
    says: str = ""
    """Part of the error, where a worker dies and the driver has to tell."""


LIVES = (
    Life("epoch.start=kill@2", "epoch.start", 1),
    # Nothing is left to sweep at the start: this one dies once epoch 2 is published.
    Life("gc.delete=kill@2", "gc.delete", 2),
    Life("block.put=oserror@3", "", 2, "no space left on device"),
    Life("block.put=late-oserror@3", "block.put", 2, "timed out"),
    Life("block.put=kill@3", "block.put", 2, WORKER_DIED),
    Life("block.written=kill@3", "block.written", 2, WORKER_DIED),
    Life("records.collected=kill@3", "records.collected", 2),
    Life("manifest.put=kill@3", "manifest.put", 2),
    Life("manifest.after=kill@3", "manifest.after", 3),
    # What the lives before wrote for epoch 3 in vain is garbage now, and this one dies in the sweep at its start.
    Life("gc.delete=kill@3", "gc.delete", 3),
    Life("claim.put=kill", "claim.put", 3),
    # Epoch 3 is published at last; the manifest of epoch 4 lands although its write seems to fail.
    Life("manifest.put=late-oserror@4,publish.before=kill@4", "publish.before", 4),
    Life("publish.part=kill@4", "publish.part", 4, WORKER_DIED),
    Life("publish.after=kill@5", "publish.after", 5),
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
        assert manifest is not None, told
        assert manifest.epoch == life.committed, told
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
