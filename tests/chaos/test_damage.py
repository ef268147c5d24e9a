"""Damaged blocks and torn manifests: found by their checksums, and recovered from what is whole."""

import shutil
from pathlib import Path

import pytest
from chaos_kit import Site, flip_bit, generation, head, manifest_path, state_blocks

from springtide.blocks.block import checksum
from springtide.dataflow.errors import StepFailed

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


@pytest.mark.slow
def test_damaged_blocks(site: Site) -> None:
    """Workers trust what they have verified once, so each damaged directory is one that they have not seen."""
    site.run(2)
    manifest = head(site.checkpoint)
    assert manifest is not None

    # Fault 16: a bit flips in every local block, and all is repaired from the durable copies.
    shutil.copytree(site.root / "local", site.root / "flipped")
    runs = state_blocks(manifest, "count") + state_blocks(manifest, "windows")
    for ref in runs:
        flip_bit(site.blocks("flipped") / ref.name)
    site.run(3, local="flipped")
    site.check(3)
    for ref in runs:
        assert checksum((site.blocks("flipped") / ref.name).read_bytes()) == ref.crc32

    # Fault 17: a bit flips in every copy.
    manifest = head(site.checkpoint)
    assert manifest is not None
    runs = state_blocks(manifest, "count")
    shutil.copytree(site.root / "flipped", site.root / "hopeless")
    for ref in runs:
        flip_bit(site.blocks("hopeless") / ref.name)
        flip_bit(site.checkpoint / ref.path)
    with pytest.raises(StepFailed) as failed:
        site.run(4, local="hopeless")
    text = str(failed.value)
    assert failed.value.step == "count"
    assert "BlockCorrupt: operator 'count'" in text
    assert any(f"slices {ref.slices}: block '{ref.name}' of epoch {ref.epoch} is damaged" in text for ref in runs)
    assert "local copy has the wrong checksum; durable copy has the wrong checksum" in text
    assert head(site.checkpoint) == manifest
    site.check(3)

    # Restored from a backup, and fault 15: the worker's directory is gone.
    for ref in runs:
        flip_bit(site.checkpoint / ref.path)
    shutil.rmtree(site.root / "hopeless")
    site.run(4, local="hopeless")
    site.check(4)


@pytest.mark.slow
def test_torn_manifests(site: Site) -> None:
    """Fault 18: back to the epoch before, and Spark repeats the torn one from the same offsets."""
    site.run(2, instances=3)
    _truncate(manifest_path(site.checkpoint, 1))  # Spark has logged the epoch as done.
    site.run(3, instances=3)
    site.check(3)

    # Computed again by fewer instances, the epoch has fewer parts; none of the old ones stays.
    closing = _next(site) - 1
    manifest_path(site.checkpoint, closing).write_bytes(b"")
    site.run(4, instances=1)
    site.check(4)

    # Spark has not logged the epoch.
    unlogged = _next(site)
    site.crash(5, f"publish.before=oserror@{unlogged}")
    _truncate(manifest_path(site.checkpoint, unlogged))
    site.run(5)
    site.check(5)

    # Spark's offset log is an epoch ahead, as a driver killed in the middle of an epoch leaves it.
    ahead = _next(site)
    site.crash(6, f"epoch.start=oserror@{ahead}")
    assert (generation(site.checkpoint) / "spark" / "offsets" / str(ahead)).exists()
    _truncate(manifest_path(site.checkpoint, ahead - 1))
    site.run(6)
    site.check(6)
    torn = {path.name for path in (generation(site.checkpoint) / "torn").iterdir()}
    assert torn == {f"{epoch:09d}.json" for epoch in (1, closing, unlogged, ahead - 1)}


def _next(site: Site) -> int:
    """The epoch after the last one that is true."""
    last = head(site.checkpoint)
    assert last is not None
    return last.epoch + 1


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
