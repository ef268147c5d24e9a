"""A deposit that hangs for epochs while garbage is collected: nothing of it goes, and the app can go back to it."""

import shutil
import signal
from pathlib import Path

import pytest
import sweeping_app
from chaos_kit import manifests
from cluster_kit import Cluster

from springtide.blocks.block import OUTPUT, RUN, checksum, epoch_of
from springtide.blocks.durable import DurableLog
from springtide.blocks.fsck import Fsck
from springtide.blocks.generation import current
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore
from springtide.cli.verbs.fsck import LOGS

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
EVERY = 16
HELD = 2 * sweeping_app.SWEEP_EVERY
"""Epochs for which the deposit hangs: two sweeps fall due, and the next durable checkpoint does not."""
HANGS, RETRIED = "deposit.written", "block.written"


def test_a_deposit_that_hangs_while_garbage_is_collected(tmp_path: Path) -> None:
    """Fault 23. It hangs when some of its blocks are in the store, and no later manifest names them any more."""
    points = [f"{HANGS}=hang", f"{RETRIED}=once"]
    with Cluster(tmp_path, workers=2, durable_every=EVERY, app=sweeping_app, failpoints=points) as cluster:
        cluster.arm(HANGS)
        cluster.until("a deposit that hangs", lambda: cluster.fired(HANGS), 240.0)
        begun, deposited = cluster.epoch, runs(cluster.checkpoint)
        assert deposited

        # An attempt that fails leaves orphans; garbage of many epochs is collected, and sweeps fall due.
        cluster.arm(RETRIED)
        cluster.until("an attempt that fails", lambda: cluster.fired(RETRIED))
        cluster.epochs(1)
        orphans = cluster.until("its orphans", lambda: orphaned_output(cluster.checkpoint))
        there, local = blocks(cluster.checkpoint), local_names(cluster)
        cluster.epochs(HELD)
        assert there - blocks(cluster.checkpoint), "old output was removed from the store"
        assert local - local_names(cluster), "old runs were removed from the workers"
        assert last(cluster.checkpoint) is None, "it still hangs"
        assert not deposited & newest(cluster.checkpoint).blocks(), "nobody names them but who waits for the deposit"
        assert deposited <= blocks(cluster.checkpoint), "nothing of it goes"
        assert orphans <= blocks(cluster.checkpoint), "the sweep cannot tell them from a deposit, and waits"

        # It goes on: what was deposited early counts as much as the rest, and the sweep makes up for lost time.
        (cluster.markers / f"{HANGS}.go").touch()
        made = cluster.until("the durable checkpoint", lambda: last(cluster.checkpoint))
        assert made.epoch <= begun, "it is of the epoch with which it began, and was not given up"
        assert deposited <= made.blocks()
        cluster.until("the sweep", lambda: not orphans & blocks(cluster.checkpoint))
        check_whole(cluster.checkpoint)
        cluster.driver.signal(signal.SIGKILL)
        assert cluster.ended() == -signal.SIGKILL
    durable = last(tmp_path / "checkpoint")
    assert durable is not None
    assert durable.epoch == made.epoch, "nothing later is durable"
    check_whole(tmp_path / "checkpoint")
    committed = manifests(tmp_path / "checkpoint")[-1].epoch
    assert committed > made.epoch

    # A new driver, with nothing left on any worker, goes back to that checkpoint.
    shutil.rmtree(tmp_path / "local")
    with Cluster(tmp_path, workers=2, durable_every=EVERY) as cluster:
        cluster.until("all that is to be repeated", lambda: cluster.epoch > committed)
        repeated = [report.epoch for report in cluster.reports() if report.replayed]
        assert repeated == list(range(made.epoch + 1, committed + 1))
        cluster.finish()
    check_whole(tmp_path / "checkpoint")


def last(checkpoint: Path) -> Manifest | None:
    """The last durable checkpoint."""
    return DurableLog(current(LocalStore(checkpoint))).last()


def blocks(checkpoint: Path) -> set[str]:
    """The blocks in the durable store."""
    return set(LocalStore(checkpoint).list("blocks"))


def local_names(cluster: Cluster) -> set[str]:
    return {path.name for path in cluster.local.glob("*/*.arrow")}


def newest(checkpoint: Path) -> Manifest:
    log = ManifestLog(current(LocalStore(checkpoint)))
    return log.read(log.epochs()[-1])


def runs(checkpoint: Path) -> set[str]:
    """The state in the durable store."""
    return {name for name in blocks(checkpoint) if f".{RUN}." in name}


def orphaned_output(checkpoint: Path) -> set[str]:
    """Output of epochs that are over which no manifest names."""
    there = {name for name in blocks(checkpoint) if f".{OUTPUT}." in name}
    try:
        known = manifests(checkpoint)
    except FileNotFoundError:
        return set()  # One was forgotten meanwhile: the next look tells.
    named = set[str]().union(*(m.blocks() for m in known))
    over = {name for name in there if (epoch := epoch_of(name)) is not None and epoch <= known[-1].epoch}
    return (over - named) & blocks(checkpoint)


def check_whole(checkpoint: Path) -> None:
    """All that is named is there with the right bytes: fsck says so, and so does a look at the durable checkpoint."""
    assert Fsck(LocalStore(checkpoint), LOGS)().findings == ()
    durable = last(checkpoint)
    assert durable is not None
    refs = [run for state in durable.operators.values() for run in state.runs]
    assert refs
    for ref in refs:
        data = (checkpoint / ref.path).read_bytes()
        assert (len(data), checksum(data)) == (ref.size_bytes, ref.crc32), ref
