"""The target of a migration is decommissioned while copies are on their way to it, whatever the strategy."""

import signal
from pathlib import Path

import pytest
from cluster_kit import Cluster, durable_reads, one_owner, retried, succeeded
from supplying import COPIED, STEP, strange_to, supplying

from springtide.blocks.block import format_slices
from springtide.migration.progress import FAILED

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
STRATEGIES = ("progressive", "handover", "lazy")
"""The live ones that copy while the app goes on; `partial_pause` copies by the same job."""


def test_a_target_is_decommissioned_while_it_is_supplied(tmp_path: Path) -> None:
    """Fault 12: the migration ends, every slice has an owner who lives, and the next migration is as any other."""
    with Cluster(tmp_path, workers=3, failpoints=[f"{COPIED}=hold"]) as cluster:
        for strategy in STRATEGIES:
            decommission_during(cluster, strategy)
            migrate_again(cluster, strategy)
        cluster.finish()


def decommission_during(cluster: Cluster, strategy: str) -> None:
    cluster.backed_up()
    before, target = cluster.epoch, cluster.workers()[-1]
    executor = cluster.executor(target)
    with supplying(cluster, target, strategy):
        executor.signal(signal.SIGPWR)
        cluster.gone(target)
        assert executor.state, "it ends when its tasks have, and one of them is held"
        migration = cluster.client.migration()
        assert migration is not None
        assert (migration["strategy"], migration["state"], migration["done"]) == (strategy, FAILED, 0), migration
        assert migration["message"] == f"worker {target} was lost"
        owned_by_the_living(cluster)
        cluster.epochs(2)
    cluster.until("the target to end", lambda: not executor.state)
    cluster.settled(3)
    owned_by_the_living(cluster)
    assert target not in cluster.workers()
    assert len(retried(cluster.reports(before))) <= 2, cluster.story()
    assert durable_reads(cluster.reports(before)) == 0, cluster.story()


def migrate_again(cluster: Cluster, strategy: str) -> None:
    """To the worker that has come in the place of the one that went."""
    before, newest = cluster.epoch, cluster.workers()[-1]
    moving = strange_to(cluster, newest)
    cluster.client.move(STEP, format_slices(moving), newest, strategy)
    assert succeeded(cluster.migrated()), cluster.story()
    assert moving <= cluster.owners()[STEP][newest]
    owned_by_the_living(cluster)
    assert durable_reads(cluster.reports(before)) == 0, cluster.story()


def owned_by_the_living(cluster: Cluster) -> None:
    assert one_owner(cluster)
    owners = {worker for share in cluster.owners().values() for worker, slices in share.items() if slices}
    assert owners <= set(cluster.workers())
    assert all(cluster.executor(worker).state for worker in owners)
