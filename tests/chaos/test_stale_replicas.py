"""A worker that stands by with an older state than the last epoch's is never taken at its word."""

import os
from pathlib import Path

import pytest
from chaos_kit import manifests
from cluster_kit import STEPS, Cluster, durable_reads, one_owner, retried
from holding import COPYING, held
from supplying import COPIED, supplying

from springtide.blocks.block import epoch_of
from springtide.ids import Epoch
from springtide.metrics.report import EpochReport

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
STEP = STEPS[0]
KEYS = 4000
"""So many that an epoch changes few of them: the state of an epoch is not that of another."""
BEHIND = 3
"""Epochs."""


def test_a_replica_whose_copies_were_held_up_is_not_promoted(tmp_path: Path) -> None:
    """Fault 14. A worker that is to stand by has copies of an older epoch, and the driver has not heard of them.

    The owner dies: another replica is there, and has it all. That one dies: the state comes from the durable store,
    though the worker that gets the slices has those copies, and the rows of the epochs since.
    """
    with Cluster(tmp_path, workers=2, keys=KEYS, failpoints=[f"{COPIED}=hold"]) as cluster:
        cluster.backed_up()
        owner, other = cluster.workers()
        theirs = cluster.owners()[STEP][owner]
        with supplying(cluster, "handover") as behind:
            offered = behind.moving & theirs
            assert offered
            cluster.epochs(BEHIND)
            before = cluster.mid_epoch() - 1
            cluster.kill(owner)
            cluster.epochs(2)
            assert offered <= cluster.owners()[STEP][other], "who is ready is promoted"
            assert durable_reads(cluster.reports(before)) == 0, cluster.story()
            assert offered <= cluster.standby(behind.id), "it is the one that is offered next"

            before = cluster.mid_epoch() - 1
            cluster.kill(other)
            cluster.epochs(3)
            assert offered <= cluster.owners()[STEP][behind.id]
            recovered_durably(cluster.reports(before))
            named = set[str]().union(*(manifest.blocks() for manifest in manifests(cluster.checkpoint)))
            assert not behind.copies & named
        cluster.settled(3)
        assert one_owner(cluster)
        cluster.finish()


def test_older_blocks_in_the_place_of_a_replicas_are_refused(tmp_path: Path) -> None:
    """Fault 14. The driver takes a standby for ready, but the newest rows that it has kept are those of epochs before.

    They are whole, have the right schema and the right names: the checksum alone tells.
    """
    with Cluster(tmp_path, workers=3, keys=KEYS, failpoints=[f"{COPYING}=hold"]) as cluster:
        cluster.backed_up()
        owner, standby, third = a_pair_and_another(cluster)
        # Nobody gets copies from now on, so that all epochs are needed of what it has kept.
        with held(cluster, COPYING, cluster.executor(third)):
            cluster.epochs(2 + BEHIND)
            planted = set_back(cluster.local / standby, 2)
            before = cluster.epoch
            cluster.kill(owner)
            cluster.epochs(3)
            assert cluster.owners()[STEP].get(standby), "it has the slices"
            recovered_durably(cluster.reports(before))
        cluster.until("the older blocks to be let go", lambda: not any(path.exists() for path in planted))
        cluster.settled(3)
        assert one_owner(cluster)
        cluster.finish()


def a_pair_and_another(cluster: Cluster) -> tuple[str, str, str]:
    """An owner, one that stands by for slices of it, and a third worker."""
    owners, workers = cluster.owners()[STEP].items(), cluster.workers()
    owner, standby = next((owner, w) for owner, slices in owners for w in workers if slices & cluster.standby(w))
    (third,) = set(workers) - {owner, standby}
    return owner, standby, third


def recovered_durably(reports: list[EpochReport]) -> None:
    """Within two epochs, by the durable copies of what nobody had."""
    assert durable_reads(reports) > 0, reports
    assert 1 <= len(retried(reports)) <= 2, reports


def set_back(directory: Path, epochs: int) -> list[Path]:
    """Put the rows that a worker has kept of earlier epochs in the place of the newest; returns the files."""
    kept = {(step_of(path), epoch_of(path.name)): path for path in directory.glob("[a-z]*.backup.*")}
    rows = {of: path.read_bytes() for of, path in kept.items()}
    planted = []
    for (step, epoch), path in kept.items():
        assert epoch is not None
        if (step, epoch - epochs) in rows:
            new = path.with_suffix(".planted")
            new.write_bytes(rows[step, Epoch(epoch - epochs)])
            os.replace(new, path)
            planted.append(path)
    assert set(map(step_of, planted)) == set(STEPS)
    return planted


def step_of(block: Path) -> str:
    return block.name.split(".")[0]
