"""A driver or a worker that dies while all workers are being replaced: nothing is lost, and nothing comes twice."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest
from cluster_kit import Cluster

from springtide.control.api.client import NoAnswer

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("point", ["stop.commit", "stop.swap", "stop.init"])
def test_a_driver_killed_while_workers_are_swapped(tmp_path: Path, point: str) -> None:
    with Cluster(tmp_path, workers=2, durable_every=4, failpoints=[f"{point}=kill"]) as cluster:
        with suppress(NoAnswer):  # It may be dead already.
            cluster.client.scale(2, "drain")
        assert cluster.ended() == -signal.SIGKILL
    with Cluster(tmp_path, workers=2, durable_every=4) as cluster:
        cluster.epochs(2)
        cluster.finish()


def test_a_worker_that_fails_to_say_that_it_has_its_state_is_told_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2, failpoints=["restore.fetched=once"]) as cluster:
        cluster.arm("restore.fetched")
        before = cluster.workers()
        cluster.client.scale(2, "capture")
        assert cluster.migrated()["state"] == "done"
        assert cluster.fired("restore.fetched")
        assert not set(before) & set(cluster.workers())
        cluster.epochs(2)
        cluster.finish()
