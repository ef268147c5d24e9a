"""Damaged blocks and torn manifests: found by their checksums, and recovered from what is whole."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chaos_kit import Site, flip_bit, head, manifest_path, state_blocks

from springtide.blocks.block import checksum
from springtide.dataflow.errors import StepFailed

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 3


def test_a_bit_flip_in_local_blocks_is_repaired_from_the_durable_copy(site: Site) -> None:
    """Fault 16. The workers live on, so the damaged directory is a new one, which they have not verified yet."""
    site.run(EPOCHS)
    shutil.copytree(site.root / "local", site.root / "damaged")
    manifest = head(site.checkpoint)
    assert manifest is not None
    refs = state_blocks(manifest, "count") + state_blocks(manifest, "windows")
    for ref in refs:
        flip_bit(site.root / "damaged" / ref.name)
    site.run(EPOCHS + 1, local="damaged")
    site.check(EPOCHS + 1)
    for ref in refs:
        assert checksum((site.root / "damaged" / ref.name).read_bytes()) == ref.crc32


def test_a_bit_flip_in_every_copy_is_an_error_that_names_what_is_lost(site: Site) -> None:
    """Fault 17."""
    site.run(EPOCHS)
    shutil.copytree(site.root / "local", site.root / "damaged")
    manifest = head(site.checkpoint)
    assert manifest is not None
    runs = state_blocks(manifest, "count")
    for ref in runs:
        flip_bit(site.root / "damaged" / ref.name)
        flip_bit(site.checkpoint / ref.path)
    with pytest.raises(StepFailed) as failed:
        site.run(EPOCHS + 1, local="damaged")
    assert failed.value.step == "count"
    text = str(failed.value)
    assert "BlockCorrupt: operator 'count'" in text
    assert any(f"slices {ref.slices}: block '{ref.name}' of epoch {ref.epoch} is damaged" in text for ref in runs)
    assert "local copy has the wrong checksum; durable copy has the wrong checksum" in text
    after = head(site.checkpoint)
    assert after is not None
    assert after.id == manifest.id
    site.check(EPOCHS)
    for ref in runs:  # The same bit flipped back: as if restored from a backup.
        flip_bit(site.checkpoint / ref.path)
    site.run(EPOCHS + 1, local="damaged")
    site.check(EPOCHS + 1)


def test_a_lost_local_directory_is_fetched_again(site: Site) -> None:
    """Fault 15."""
    site.run(EPOCHS)
    shutil.rmtree(site.root / "local")
    site.run(EPOCHS + 1)
    site.check(EPOCHS + 1)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("tear", [_truncate, _empty])
def test_a_torn_manifest_of_an_epoch_that_spark_has_logged(site: Site, tear: Callable[[Path], None]) -> None:
    """Fault 18: back to the epoch before, and Spark repeats the torn one from the same offsets."""
    site.run(EPOCHS)
    tear(manifest_path(site.checkpoint, EPOCHS - 1))
    site.run(EPOCHS + 1)
    site.check(EPOCHS + 1)
    assert [path.name for path in (site.checkpoint / "torn").iterdir()] == [f"{EPOCHS - 1:09d}.json"]


def test_a_torn_manifest_of_an_epoch_that_was_never_published(site: Site) -> None:
    """Fault 18, after a crash between the manifest and the sinks."""
    site.crash(EPOCHS, "publish.before=oserror@2")
    _truncate(manifest_path(site.checkpoint, 2))
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_torn_manifest_when_spark_has_begun_the_next_epoch(site: Site) -> None:
    """Fault 18, when Spark's offset log is an epoch ahead: so a driver killed in the middle of an epoch leaves it."""
    site.crash(EPOCHS, "epoch.start=oserror@2")
    assert (site.checkpoint / "spark" / "offsets" / "2").exists()
    _truncate(manifest_path(site.checkpoint, 1))
    site.run(EPOCHS)
    site.check(EPOCHS)


def test_a_torn_manifest_and_fewer_instances_leave_no_part_of_the_torn_epoch_behind(site: Site) -> None:
    """Fault 18: the epoch is published again in fewer parts than before."""
    site.run(EPOCHS, instances=3)
    _truncate(manifest_path(site.checkpoint, EPOCHS - 1))
    site.run(EPOCHS + 1, instances=1)
    site.check(EPOCHS + 1)
