"""Workers that die, stall and lose their files, before, during and after a migration: nothing is lost or doubled."""

import os
import signal
from pathlib import Path

import pytest
from chaos_kit import manifests
from cluster_kit import SLICES, STEPS, Cluster, durable_reads, one_owner, succeeded

from springtide.control.api.protocol import under_way

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
AWAY_S = 60.0
IMPATIENT = (
    "spark.network.timeout=15s",
    "spark.network.timeoutInterval=2s",
    "spark.executor.heartbeatInterval=2s",
)
"""A worker that is silent for this time is taken for lost."""


def test_workers_die_and_others_take_over(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=3, failpoints=["update.begun=executor"]) as cluster:
        # Fault 1: a worker is killed in the middle of a task; its neighbour has all it needs.
        cluster.backed_up()
        before, at_first = cluster.epoch, cluster.workers()
        cluster.arm("update.begun")
        cluster.until("the failpoint", lambda: cluster.fired("update.begun"))
        (victim,) = cluster.until("a plan without the dead", lambda: set(at_first) - set(cluster.workers()))
        cluster.epochs(3)
        assert not (cluster.local / victim).exists(), "somebody clears up after it"
        retried = [r.epoch for r in cluster.reports(before) if r.retries]
        assert 1 <= len(retried) <= 2, retried
        cluster.settled(3)
        assert durable_reads(cluster.reports(before)) == 0, cluster.story()

        # Fault 15: a worker's directory is wiped, and it is still the worker that owns what it owned.
        cluster.epochs(2)
        victim = cluster.workers()[0]
        wiped = cluster.wipe(victim)
        cluster.epochs(4)
        now = {path.name for path in (cluster.local / victim).glob("*.arrow")}
        assert wiped
        assert now - wiped
        assert victim in cluster.workers()

        # Fault 13: a worker and the one that stands by for it die together: the durable store has it all.
        cluster.settled(3)
        cluster.until("one replica a slice, and no more", lambda: replicas(cluster) == SLICES)
        before = cluster.mid_epoch() - 1
        cluster.kill(*cluster.workers()[:2])
        cluster.epochs(3)
        assert durable_reads(cluster.reports(before)) > 0
        assert len([r for r in cluster.reports(before) if r.retries]) <= 2
        cluster.settled(3)
        assert one_owner(cluster)
        cluster.finish()


def test_failpoints_between_an_update_a_copy_and_a_flip(tmp_path: Path) -> None:
    """Without replicas nobody copies but for a migration, so a copy's target is the migration's."""
    points = ("block.written=executor", "copy.written=executor")
    with Cluster(tmp_path, workers=2, replicas=0, failpoints=points) as cluster:
        # Fault 2: a worker dies when it has written its blocks and nobody knows.
        before = cluster.epoch
        at_first = cluster.workers()
        cluster.arm("block.written")
        cluster.until("the failpoint", lambda: cluster.fired("block.written"))
        cluster.until("a plan without the dead", lambda: set(at_first) - set(cluster.workers()))
        orphans = cluster.until("orphans", cluster.orphans)
        cluster.epochs(2)
        assert sum(r.retries for r in cluster.reports(before)) in (1, 2)
        cluster.settled(2)

        # Fault 10: the target of a migration, here the only other worker, dies when it has written copies and
        # nobody knows.
        cluster.client.scale(1, "handover")
        cluster.settled(1)
        before, owners = cluster.epoch, cluster.owners()
        cluster.arm("copy.written")
        cluster.client.scale(2, "handover")
        cluster.until("the failpoint", lambda: cluster.fired("copy.written"))
        failed = cluster.migrated()
        assert failed["state"] == "failed", failed
        assert not any(f"worker {source} was lost" in failed["message"] for source in owners[STEPS[0]]), failed
        assert failed["done"] == 0
        assert cluster.owners() == owners or under_way(cluster.client.migration())
        cluster.epochs(2)
        cluster.settled(2)
        assert durable_reads(cluster.reports(before)) == 0, cluster.story()
        cluster.finish()
        assert orphans & set(os.listdir(cluster.checkpoint / "blocks")), "only a sweep finds them"

    # Fault 11: the driver dies when the targets have all they need and still own nothing.
    with Cluster(tmp_path, workers=2, replicas=0, failpoints=["plan.flip=kill"]) as cluster:
        assert not orphans & set(os.listdir(cluster.checkpoint / "blocks")), "what nobody names was collected"
        to = cluster.workers()[0]
        moved = cluster.owners()[STEPS[0]][cluster.workers()[1]]
        cluster.client.move(STEPS[0], ",".join(map(str, sorted(moved))), to, "handover")
        assert cluster.ended() == -signal.SIGKILL
    with Cluster(tmp_path, workers=2, replicas=0) as cluster:
        assert one_owner(cluster)
        to, source = cluster.workers()
        cluster.client.move(STEPS[0], ",".join(map(str, range(SLICES))), to, "handover")
        assert succeeded(cluster.migrated())
        assert one_owner(cluster)
        assert not cluster.owners()[STEPS[0]].get(source)
        cluster.finish()


def test_a_migration_loses_its_source_and_then_its_target(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2, failpoints=["copy.read=executor"]) as cluster:
        # Fault 9: only the two old workers have anything to copy, so the one that dies is a source.
        cluster.backed_up()
        before, old = cluster.epoch, cluster.workers()
        cluster.client.scale(3, "handover")
        cluster.until(
            "a new worker that stands by", lambda: any(cluster.standby(w) for w in cluster.workers() if w not in old)
        )
        cluster.arm("copy.read")
        cluster.until("the failpoint", lambda: cluster.fired("copy.read"))
        failed = cluster.migrated()
        assert failed["state"] == "failed", failed
        assert any(failed["message"] == f"worker {source} was lost" for source in old), failed
        cluster.epochs(3)
        assert len([r for r in cluster.reports(before) if r.retries]) <= 2
        cluster.settled(3)
        assert durable_reads(cluster.reports(before)) == 0, cluster.story()
        assert all(cluster.owners()[STEPS[0]].values()), "a worker that came for a failed migration gets its share"

        # Fault 12: the target is decommissioned while it is being supplied.
        target = cluster.workers()[-1]
        foreign = cluster.until(
            "slices that the target has nothing to do with",
            lambda: sorted(set(range(SLICES)) - cluster.owners()[STEPS[0]][target] - cluster.standby(target)),
        )
        cluster.client.move(STEPS[0], ",".join(map(str, foreign)), target, "lazy")
        cluster.until("a target that stands by", lambda: set(foreign) <= cluster.standby(target))
        cluster.kill(target, with_signal=signal.SIGPWR)
        cluster.epochs(3)
        cluster.settled(3)
        assert one_owner(cluster)
        cluster.finish()


def test_attempts_that_outlive_their_epoch(tmp_path: Path) -> None:
    points = ("update.begun=hang", "block.written=note")
    with Cluster(tmp_path, workers=3, settings=IMPATIENT, failpoints=points) as cluster:
        # Fault 8: while a worker's attempts hang, another worker dies, and the epoch is run anew beside them.
        cluster.backed_up()
        dead, hung = cluster.workers()[:2]
        before = cluster.mid_epoch() - 1
        _, *attempts = cluster.executor(hung).family()
        with cluster.stopped(attempts):
            cluster.kill(dead)
        cluster.epochs(3)
        assert len([r for r in cluster.reports(before) if r.retries]) <= 2
        cluster.settled(3)

        # Fault 6: a worker stands still until it is taken for dead, and then goes on.
        cluster.backed_up()
        stalled = cluster.workers()[0]
        cluster.mid_epoch()
        with cluster.stopped(cluster.executor(stalled).family()):
            cluster.gone(stalled)
        cluster.epochs(2)
        cluster.settled(3)
        assert stalled not in cluster.workers()

        # Faults 6 and 23: a task hangs while its executor is lost, and writes its blocks after epochs that were
        # committed, published and cleaned up without it.
        cluster.backed_up()
        executors = {w: cluster.executor(w) for w in cluster.workers()}
        cluster.arm("update.begun")
        cluster.until("the failpoint", lambda: cluster.fired("update.begun"))
        pid = cluster.marked("update.begun")
        (zombie,) = (w for w, executor in executors.items() if pid in {p.pid for p in executor.family()})
        cluster.kill(zombie)
        cluster.epochs(3)
        known = {path.name for path in (cluster.checkpoint / "blocks").iterdir()}
        written = cluster.markers / f"block.written.{pid}"
        written.unlink(missing_ok=True)
        (cluster.markers / "update.begun.go").touch()
        cluster.until("blocks of the zombie", written.exists)
        late = {path.name for path in (cluster.local / zombie).glob("*.arrow")}
        assert late, "it did go on"
        assert not late & known
        cluster.epochs(3)
        assert not late & set().union(*(m.blocks() for m in manifests(cluster.checkpoint)))
        cluster.settled(3)
        assert zombie not in cluster.workers()
        cluster.finish()


def test_a_store_that_is_away(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=2) as cluster:
        cluster.epochs(3)
        # Fault 22: the durable store takes no blocks for a minute. The app waits, and takes no more rows meanwhile.
        away = take_away(cluster.checkpoint / "blocks")
        before = cluster.epoch
        assert cluster.ended(AWAY_S) is None, cluster.said()
        assert cluster.epoch <= before + 1
        bring_back(cluster.checkpoint / "blocks", away)
        cluster.epochs(3)
        assert len([r for r in cluster.reports(before) if r.retries]) <= 2
        cluster.finish()


def replicas(cluster: Cluster) -> int:
    """How many replicas the slices of the first step have together."""
    return sum(len(cluster.standby(worker)) for worker in cluster.workers())


def take_away(directory: Path) -> list[Path]:
    """Put a file in a directory's place, so that nothing can be written to it; returns where its files are now."""
    away: list[Path] = []
    while True:
        away.append(directory.with_name(f"away-{len(away)}"))
        directory.rename(away[-1])
        try:
            directory.touch(exist_ok=False)
        except FileExistsError:
            continue  # A worker has made it again in between.
        return away


def bring_back(directory: Path, away: list[Path]) -> None:
    directory.unlink()
    for place in reversed(away):
        for path in list(directory.iterdir()) if directory.exists() else []:
            path.rename(place / path.name)
        if directory.exists():
            directory.rmdir()
        place.rename(directory)
