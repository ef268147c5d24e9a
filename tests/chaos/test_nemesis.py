"""Storms: faults at random under load, and afterwards every sink equals the oracle."""

import os
import random
import time
from pathlib import Path

import cluster_app
import meeting_app
import meeting_oracle
import pytest
from chaos_kit import head
from cluster_check import whole
from cluster_kit import Cluster
from nemesis import FEWEST, Nemesis

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
SEED = "SPRINGTIDE_NEMESIS_SEED"
SECONDS = "SPRINGTIDE_NEMESIS_SECONDS"
APP = "SPRINGTIDE_NEMESIS_APP"
APPS = {"counts": cluster_app, "meetings": meeting_app}


def seed() -> int:
    """From the environment, else a new one; printed, so that a storm can be had again."""
    found = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    print(f"{SEED}={found}", flush=True)
    return found


def struck_app(seed: int) -> str:
    """The app that the environment names, else one by the seed: streams meet in one storm of three."""
    found = os.environ.get(APP) or ("meetings" if seed % 3 == 0 else "counts")
    print(f"{APP}={found}", flush=True)
    return found


def finish(cluster: Cluster, app: str) -> None:
    """Stop the app, and compare what its sinks hold with its oracle."""
    if app == "counts":
        cluster.finish()
        return
    cluster.stop()
    last = head(cluster.checkpoint)
    assert last is not None
    meeting_oracle.check(cluster.root, last.epoch + 1, cluster.keys)
    whole(cluster.checkpoint)


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
    number = seed()
    app = struck_app(number)
    with Cluster(tmp_path, workers=3, app=APPS[app]) as cluster:
        nemesis = Nemesis(cluster, number)
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
        finish(cluster, app)
