"""The target of a migration is decommissioned while copies are on their way to it, whatever the strategy."""

import signal
from pathlib import Path

import pytest
from cluster_kit import SLICES, STEPS, Cluster, durable_reads, one_owner, retried, succeeded
from supplying import COPIED, supplying

from springtide.blocks.slice_set import SliceSet
from springtide.migration.state import MigrationState

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
STEP = STEPS[0]
STRATEGIES = ("progressive", "handover", "lazy")
"""The live ones that copy while the app goes on; `partial_pause` copies by the same job."""


def test_a_target_is_decommissioned_while_it_is_supplied(tmp_path: Path) -> None:
    """Fault 12: the migration ends, every slice has an owner who lives, and the next migration is as any other."""
    with Cluster(tmp_path, workers=2, failpoints=[f"{COPIED}=hold"]) as cluster:
        for strategy in STRATEGIES:
            cluster.backed_up()
            before = cluster.epoch
            decommission_during(cluster, strategy)
            migrate_again(cluster, strategy)
            assert durable_reads(cluster.reports(before)) == 0, cluster.story()
        cluster.finish()


def decommission_during(cluster: Cluster, strategy: str) -> None:
    before, owners = cluster.epoch, cluster.owners()
    with supplying(cluster, strategy) as target:
        target.executor.signal(signal.SIGPWR)
        cluster.gone(target.id)
        assert target.executor.state, "it ends when its tasks have, and one of them is held"
        migration = cluster.client.migration()
        assert migration is not None
        assert (migration["strategy"], migration["state"], migration["done"]) == (strategy, MigrationState.FAILED, 0), (
            migration
        )
        assert migration["message"] == f"worker {target.id} was lost"
        assert cluster.owners() == owners
        cluster.epochs(2)
    cluster.until("the target to end", lambda: not target.executor.state)
    cluster.settled(3)
    assert target.id not in cluster.workers()
    owned_by_the_living(cluster)
    assert len(retried(cluster.reports(before))) <= 2, cluster.story()


def migrate_again(cluster: Cluster, strategy: str) -> None:
    """To the worker that has come in the place of the one that went; and then back to two."""
    newest = cluster.workers()[-1]
    assert cluster.owners()[STEP][newest], "it got a share by itself"
    moving = frozenset(range(SLICES)) - cluster.owners()[STEP][newest]
    cluster.client.move(STEP, str(SliceSet.of(moving)), newest, strategy)
    assert succeeded(cluster.migrated()), cluster.story()
    assert cluster.owners()[STEP][newest] == frozenset(range(SLICES))
    owned_by_the_living(cluster)
    cluster.client.scale(2, "handover")
    assert succeeded(cluster.migrated()), cluster.story()
    cluster.settled(2)


def owned_by_the_living(cluster: Cluster) -> None:
    assert one_owner(cluster)
    owners = {worker for share in cluster.owners().values() for worker, slices in share.items() if slices}
    assert owners <= set(cluster.workers())
    assert all(cluster.executor(worker).state for worker in owners)
