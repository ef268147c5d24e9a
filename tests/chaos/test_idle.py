"""An app whose input has stopped: it grows, shrinks, heals and makes its state durable all the same."""

from pathlib import Path

import ending_app
import pytest
from chaos_kit import drive, quiet
from chaos_oracle import expected, published
from cluster_kit import Cluster, one_owner, succeeded

from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.migration.strategies import DEFAULT, LIVE, STOPPING

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
EPOCHS = 4


def idle(cluster: Cluster) -> None:
    """Wait until all rows are in."""
    cluster.until("the last rows", lambda: cluster.epoch >= EPOCHS - 1)


def test_every_strategy_grows_and_shrinks_without_input(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2, epochs=EPOCHS, durable_every=3) as cluster:
        idle(cluster)
        for strategy in [*LIVE, *STOPPING]:
            for workers in (3, 2):
                cluster.client.scale(workers, strategy)
                assert succeeded(cluster.migrated()), cluster.story()
                cluster.settled(workers)
                assert one_owner(cluster)
        cluster.finish()


def test_an_app_on_workers_that_ends_with_its_input_closes_its_windows_and_waits_for_no_migration(
    tmp_path: Path,
) -> None:
    """Here the first windows close after the third epoch."""
    ended = drive(tmp_path, "", epochs=3, app=ending_app)
    assert ended.code == 0, str(ended)
    assert quiet(LocalStore(tmp_path / "checkpoint")) == {3}
    oracle, found = expected(3), published(tmp_path)
    assert oracle.finals
    assert found == oracle


def test_a_lost_worker_a_cancelled_growth_and_durable_state_without_input(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=3, epochs=EPOCHS, durable_every=50) as cluster:
        idle(cluster)
        head = cluster.epoch

        def durable() -> bool:
            found = DurableLog(current(LocalStore(cluster.checkpoint))).last()
            return found is not None and found.epoch >= head

        cluster.until("the state to be durable", durable)
        lost = cluster.workers()[1]
        cluster.kill(lost)
        cluster.settled(3)
        assert lost not in cluster.workers()

        # Every copy of some state is lost: the app goes back, and repeats what it must, epochs without rows and all.
        cluster.kill(*cluster.workers()[:2])
        cluster.settled(3)
        cluster.client.scale(4, DEFAULT)
        cluster.client.cancel()
        cluster.settled(3)
        assert all(r.without_input and r.rows_in == 0 for r in cluster.reports(EPOCHS - 1))
        cluster.finish()
