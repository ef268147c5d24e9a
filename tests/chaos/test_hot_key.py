"""One key gets every row: nothing is lost, and memory grows neither with the epochs nor beyond what many keys take."""

from dataclasses import dataclass
from pathlib import Path

import hot_key_app
import numpy as np
import pytest
from chaos_kit import head
from cluster_kit import Cluster, one_owner, succeeded
from processes import Process

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
MANY_KEYS = 2000
EPOCHS = 40
FLAT = 0.1
"""How much the memory of the later half of the epochs may grow by, from its first to its last, by a fitted line."""
FACTOR = 1.5
"""How much more memory one key may take than many."""
STEPS = ("count", "windows", "first")


@dataclass(frozen=True)
class Sample:
    """What workers hold after an epoch."""

    epoch: int
    python_bytes: int
    """Memory of their Python processes that is their own, together."""
    whole_bytes: int
    """And of their JVMs."""


def test_one_key_gets_every_row(tmp_path: Path) -> None:
    """Fault 30."""
    (tmp_path / "spread").mkdir()
    with Cluster(tmp_path / "spread", workers=2, keys=MANY_KEYS, app=hot_key_app) as cluster:
        spread = samples(cluster)
        assert min(share_of_busiest(cluster, step) for step in STEPS[:2]) < 0.7
        cluster.stop()
    check(cluster)

    (tmp_path / "hot").mkdir()
    with Cluster(tmp_path / "hot", workers=2, keys=1, app=hot_key_app) as cluster:
        hot = samples(cluster)
        assert all(share_of_busiest(cluster, step) == 1 for step in STEPS), "one instance gets every row"
        check_state(cluster)

        # The worker that owns it dies, and the app grows.
        busiest = max(cluster.reports()[-1].operators[0].instances, key=lambda i: i.rows_in)
        cluster.kill(busiest.worker)
        cluster.epochs(3)
        cluster.settled(2)
        cluster.client.scale(3, "progressive")
        assert succeeded(cluster.migrated())
        cluster.settled(3)
        cluster.epochs(3)
        assert one_owner(cluster)
        cluster.stop()
    check(cluster)

    for run in (spread, hot):
        assert growth([s.python_bytes for s in run[len(run) // 2 :]]) < FLAT, run
    assert peak([s.python_bytes for s in hot]) < FACTOR * peak([s.python_bytes for s in spread]), (hot, spread)
    assert peak([s.whole_bytes for s in hot]) < FACTOR * peak([s.whole_bytes for s in spread]), (hot, spread)


def samples(cluster: Cluster) -> list[Sample]:
    """What its workers hold after each epoch that is seen to end."""
    found: list[Sample] = []
    while not found or found[-1].epoch < EPOCHS:
        cluster.epochs(1)
        jvms = list(cluster.driver.executors().values())
        pythons = [p for jvm in jvms for p in jvm.family()[1:]]
        python = sum(map(own_bytes, pythons))
        found.append(Sample(cluster.epoch, python, python + sum(map(own_bytes, jvms))))
    return found


def own_bytes(process: Process) -> int:
    """Memory of a process that no file backs and nobody shares; none if it is gone."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def growth(sizes: list[int]) -> float:
    """By how much a line fitted to these rises, as a share of their mean."""
    slope = float(np.polyfit(np.arange(len(sizes)), sizes, 1)[0])
    return slope * (len(sizes) - 1) / float(np.mean(sizes))


def peak(sizes: list[int]) -> float:
    return float(max(sizes))


def share_of_busiest(cluster: Cluster, step: str) -> float:
    """The share of a step's rows that its busiest instance got in the last epoch."""
    (report,) = (operator for operator in cluster.reports()[-1].operators if operator.step == step)
    rows = [instance.rows_in for instance in report.instances]
    return max(rows) / sum(rows)


def check_state(cluster: Cluster) -> None:
    """State is of one key, or of its few open windows, however many rows have come."""
    for report in cluster.reports():
        assert all(operator.state_rows <= 4 for operator in report.operators), report
    halves = cluster.reports()[:EPOCHS]
    half = len(halves) // 2
    sizes = [sum(operator.state_bytes for operator in report.operators) for report in halves]
    assert max(sizes[half:]) <= 1.2 * max(sizes[:half])


def check(cluster: Cluster) -> None:
    """What was published is right."""
    last = head(cluster.checkpoint)
    assert last is not None
    hot_key_app.check(cluster.root, last.epoch + 1, cluster.keys)
