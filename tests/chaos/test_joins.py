"""Two streams that meet while workers come, go and die: what comes out is what plain Python makes of the same rows."""

import signal
from pathlib import Path

import join_app
import pytest
from chaos_kit import head
from cluster_kit import Cluster, succeeded

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_joins_that_move_and_lose_a_worker(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2, app=join_app) as cluster:
        cluster.client.scale(3, "progressive")
        assert succeeded(cluster.migrated())
        cluster.settled(3)
        cluster.backed_up()
        cluster.kill(cluster.workers()[0])
        cluster.epochs(3)
        cluster.stop()
    checked(cluster)


def test_joins_under_every_strategy_and_a_driver_that_dies(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2, app=join_app) as cluster:
        for workers, strategy in ((3, "handover"), (2, "partial_pause"), (3, "drain"), (2, "capture"), (3, "restart")):
            cluster.client.scale(workers, strategy)
            assert succeeded(cluster.migrated()), strategy
            cluster.settled(workers)
            cluster.epochs(2)
        cluster.mid_epoch()
        cluster.driver.signal(signal.SIGKILL)
        assert cluster.ended() == -signal.SIGKILL
    with Cluster(tmp_path, workers=2, app=join_app) as cluster:
        cluster.client.scale(3, "lazy")
        cluster.settled(3)
        cluster.epochs(2)
        cluster.stop()
    checked(cluster)


def checked(cluster: Cluster) -> None:
    last = head(cluster.checkpoint)
    assert last is not None
    join_app.check(cluster.root, last.epoch + 1, cluster.keys)
