"""Streams that meet, sessions and timers, while workers come, go and die, and the driver too."""

import signal
from pathlib import Path

import meeting_app
import meeting_oracle
import pytest
from chaos_kit import head
from cluster_kit import Cluster, succeeded

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.timeout(600)]
REST = ("handover", "partial_pause", "lazy", "drain", "capture", "restart")


@pytest.mark.parametrize("strategy", ["progressive", *(pytest.param(name, marks=pytest.mark.slow) for name in REST)])
def test_two_workers_become_three_and_two_again_and_somebody_dies(tmp_path: Path, strategy: str) -> None:
    with Cluster(tmp_path, workers=2, app=meeting_app) as cluster:
        cluster.client.scale(3, strategy)
        assert succeeded(cluster.migrated())
        cluster.backed_up()
        cluster.kill(cluster.workers()[0])
        cluster.settled(3)
        cluster.client.scale(2, strategy)
        assert succeeded(cluster.migrated())
        cluster.mid_epoch()
        cluster.driver.signal(signal.SIGKILL)
        assert cluster.ended() == -signal.SIGKILL
    with Cluster(tmp_path, workers=2, app=meeting_app) as cluster:
        cluster.stop()
    last = head(cluster.checkpoint)
    assert last is not None
    meeting_oracle.check(tmp_path, last.epoch + 1, cluster.keys)
