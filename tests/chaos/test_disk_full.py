"""Disks that are really full: the app ends with an error that says where, and goes on once there is room."""

import os
import re
import subprocess
import sys
from pathlib import Path

import command_app
import pytest
from chaos_kit import head, local_blocks
from chaos_oracle import expected, published
from cluster_kit import Cluster
from small_disk import SmallDisk
from waiting import wait_until

import springtide
from springtide.blocks.fsck import Fsck
from springtide.blocks.store import LocalStore
from springtide.cli.verbs.fsck import LOGS
from springtide.errors import FAILED

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
EPOCHS = 8
ROOM = 8 << 20
FULL = "No space left on device"
FILLED_S = 180.0


def test_the_disk_of_one_worker_of_two(tmp_path: Path) -> None:
    """Fault 19, on workers: something else fills the disk of one while the app runs."""
    with SmallDisk(local_blocks(tmp_path) / "1", ROOM) as disk:
        with Cluster(tmp_path, workers=2, app=command_app) as cluster:
            cluster.backed_up()
            assert list(disk.at.glob("*.arrow")), "worker 1 keeps its blocks there"

            def ended() -> bool:
                disk.fill()
                return cluster.ended(0.0) is not None

            wait_until("the driver to end", ended, FILLED_S, cluster.story)
            code, said = cluster.ended(0.0), cluster.said()
        assert code == FAILED, said
        check_error(said, tmp_path / "checkpoint", disk.at)
        disk.clear()
        with Cluster(tmp_path, workers=2) as cluster:
            cluster.epochs(3)
            cluster.settled(2)
            assert list(disk.at.glob("*.arrow"))
            cluster.finish()
        check_sound(tmp_path / "checkpoint")


@pytest.mark.parametrize("place", ["local", "checkpoint"])
def test_a_disk_that_the_app_itself_fills(tmp_path: Path, place: str) -> None:
    """Faults 19 and 20, embedded: what a few epochs leave does not fit, in the user's own command."""
    with SmallDisk(tmp_path / place, SIZES[place]) as disk:
        code, said = command(tmp_path)
        assert code == FAILED, said
        check_error(said, tmp_path / "checkpoint", local_blocks(tmp_path) if place == "local" else disk.at)
        again = command(tmp_path)
        assert again[0] == FAILED, "nothing has changed"
        assert FULL in again[1]
        disk.grow(ROOM)
        code, said = command(tmp_path)
        assert code == 0, said
        oracle, found = expected(EPOCHS), published(tmp_path)
        assert not found.beyond(oracle)
        assert not oracle.beyond(found)
        check_sound(tmp_path / "checkpoint")


SIZES = {"local": 128 << 10, "checkpoint": 208 << 10}
"""Room for an epoch or two."""


def check_error(said: str, checkpoint: Path, place: Path) -> None:
    """One message that names the step, the place and the remedy; the epoch is not committed, and nothing is damaged."""
    assert "Traceback" not in said, said
    assert "step '" in said, said
    assert str(place) in said, said
    assert FULL in said, said
    assert "Free space" in said, said
    (epoch,) = re.findall(r"Epoch (\d+) is not committed: the next start runs it again", said)
    last = head(checkpoint)
    assert last is not None, said
    assert last.epoch == int(epoch) - 1
    check_sound(checkpoint)


def check_sound(checkpoint: Path) -> None:
    assert Fsck(LocalStore(checkpoint), LOGS)().findings == ()


def command(root: Path) -> tuple[int, str]:
    """`springtide run` on the chaos app: its exit code, and what it printed."""
    told = command_app.arguments(root, EPOCHS, "--until=available", "--instances=2")
    paths = [Path(springtide.__file__).parents[1], Path(__file__).parent]
    done = subprocess.run(
        [sys.executable, "-c", "from springtide.cli.entry import main; main()", *told],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240.0,
    )
    return done.returncode, done.stdout
