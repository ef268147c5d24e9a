"""Drivers and executors killed while they publish to Kafka: the topics equal the oracle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kafka_app
import pytest
from chaos_kit import head
from kafka_oracle import check

from springtide import faults
from springtide.testing.kafka import Broker
from springtide.testing.topics import create

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(2400)]
DEADLINE_S = 600.0
EPOCHS = 5


def drive(root: Path, broker: Broker, failpoints: str, *options: str) -> tuple[int, set[str], str]:
    """Run the app in a process of its own with failpoints armed: how it ended, which points fired, what it said."""
    markers = root / "markers"
    markers.mkdir(exist_ok=True)
    for left in markers.iterdir():
        left.unlink()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        faults.ENVIRONMENT: failpoints,
        faults.MARKERS: str(markers),
    }
    done = subprocess.run(
        [sys.executable, kafka_app.__file__, str(root), f"--servers={broker.servers}", f"--epochs={EPOCHS}", *options],
        env=environment,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    return done.returncode, {path.name for path in markers.iterdir()}, done.stdout


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as broker:
        for name in (kafka_app.ROWS, kafka_app.COUNTS):
            create(broker.servers, name, 2)
        yield broker


def test_a_driver_killed_at_every_point_of_publishing(fresh: Broker, tmp_path: Path) -> None:
    """Each life dies with SIGKILL one epoch later than the one before; the last runs to the end."""
    lives = ("manifest.after", "publish.before", "publish.after")
    for epoch, point in enumerate(lives):
        code, fired, said = drive(tmp_path, fresh, f"{point}=kill@{epoch}")
        assert code == -signal.SIGKILL, said
        assert fired == {point}
        manifest = head(tmp_path / "checkpoint")
        assert manifest is not None
        assert manifest.epoch == epoch
    code, _, said = drive(tmp_path, fresh, "")
    assert code == 0, said
    check(fresh.servers, EPOCHS)


def test_executors_killed_while_they_deliver(fresh: Broker, tmp_path: Path) -> None:
    """One dies with its transaction open, one right after its commit; others take their parts, and the app goes on."""
    code, fired, said = drive(tmp_path, fresh, "publish.sent=executor@1,publish.part=executor@3", "--workers=2")
    assert code == 0, said
    assert fired == {"publish.sent", "publish.part"}
    check(fresh.servers, EPOCHS)
