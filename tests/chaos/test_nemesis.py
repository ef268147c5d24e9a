"""Storms: faults at random under load, and afterwards every sink equals the oracle."""

import os
import random
import time
from pathlib import Path

import pytest
from cluster_kit import Cluster
from nemesis import FEWEST, Nemesis

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
SEED = "SPRINGTIDE_NEMESIS_SEED"
SECONDS = "SPRINGTIDE_NEMESIS_SECONDS"


def seed() -> int:
    """From the environment, else a new one; printed, so that a storm can be had again."""
    found = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    print(f"{SEED}={found}", flush=True)
    return found


@pytest.mark.timeout(420)
def test_a_short_storm(tmp_path: Path) -> None:
    """A rescale, and a killed worker while it is under way."""
    with Cluster(tmp_path, workers=FEWEST) as cluster:
        nemesis = Nemesis(cluster, seed())
        for fault in ("scale", "kill"):
            nemesis.strike(fault)
        cluster.until("more workers than at first", lambda: len(cluster.ready()) > FEWEST)
        cluster.finish()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_long_storm(tmp_path: Path) -> None:
    """Every kind of fault at least once, and then whatever comes until the time is over."""
    with Cluster(tmp_path, workers=3) as cluster:
        nemesis = Nemesis(cluster, seed())
        ends = time.monotonic() + float(os.environ.get(SECONDS) or 180)
        waiting = list(nemesis.faults)
        nemesis.random.shuffle(waiting)
        struck = set()
        while waiting or time.monotonic() < ends:
            fault = waiting.pop() if waiting else nemesis.random.choice(list(nemesis.faults))
            nemesis.strike(fault)
            struck.add(fault)
        assert struck == set(nemesis.faults)
        nemesis.idle()
        cluster.until("everybody to be ready", lambda: set(cluster.ready()) == set(cluster.workers()))
        cluster.finish()
