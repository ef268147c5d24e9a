"""More workers than there is room for: refused with the figures, and if forced and called off, given back at once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_kit import SLICES, Cluster, one_owner, succeeded

from springtide.control.api.protocol import Options, Refused
from springtide.migration.strategies import DEFAULT

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
FORCED = Options(force=True)
MANY = SLICES


def executors(cluster: Cluster) -> int:
    return len(cluster.driver.executors())


@pytest.fixture
def two_cores() -> Iterator[None]:
    """A driver that is started now may use no more, however many there are."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:2])
    yield
    os.sched_setaffinity(0, every)


@pytest.mark.usefixtures("two_cores")
def test_a_growth_beyond_all_room(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2) as cluster:
        says = rf"{MANY} workers asked for; this machine \(.* cores?.*\) carries at most .*--force"
        with pytest.raises(Refused, match=says):
            cluster.client.scale(MANY, DEFAULT)
        assert cluster.client.migration() is None

        cluster.client.scale(MANY, DEFAULT, FORCED)
        cluster.until("executors on their way", lambda: executors(cluster) > 2)
        assert cluster.client.cancel()["state"] == "cancelled"
        cluster.until("the executors to go", lambda: executors(cluster) == 2)
        cluster.epochs(4)
        assert executors(cluster) == 2, "nobody comes late"
        cluster.settled(2)

        # A worker dies while others are on their way: its place is taken, and the others are given back.
        cluster.client.scale(MANY, DEFAULT, FORCED)
        cluster.until("executors on their way", lambda: executors(cluster) > 2)
        cluster.kill(cluster.workers()[0])
        cluster.client.cancel()
        cluster.settled(2)
        cluster.until("the others to go", lambda: executors(cluster) == 2)
        cluster.epochs(4)
        assert len(cluster.ready()) == executors(cluster) == 2

        cluster.client.scale(3, DEFAULT)
        assert succeeded(cluster.migrated()), cluster.story()
        cluster.settled(3)
        assert one_owner(cluster)
        cluster.finish()
