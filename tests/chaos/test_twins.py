"""Two attempts of one task that both write their blocks: Spark's own speculation, and an epoch that is run again."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from chaos_kit import Ended, drive, head, manifests
from chaos_oracle import expected, published
from cluster_kit import Cluster
from holding import hold, holds, let_go
from standalone import Standalone
from waiting import wait_until

from springtide import faults
from springtide.blocks.block import epoch_of
from springtide.blocks.store import LocalStore
from springtide.engine.lifecycle.report_log import last_reports

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Spark starts a twin on another host only."""
ROUNDS, EPOCHS = 3, 4
PATIENCE_S = 120.0
WRITTEN, COMMITTED = "block.written", "manifest.after"
SPECULATION = (
    "spark.speculation=true",
    "spark.speculation.interval=100ms",
    "spark.speculation.minTaskRuntime=1s",
    "spark.speculation.quantile=0.1",
    "spark.speculation.efficiency.enabled=false",
    "spark.locality.wait=0s",
    "spark.default.parallelism=3",
)
Found = TypeVar("Found")
Attempts = dict[tuple[str, ...], set[str]]


def test_speculative_twins_that_both_write(tmp_path: Path) -> None:
    """Fault 7. An attempt has written its blocks and hangs until its twin has, too; then both go on.

    Without workers=N state is in the durable store alone, and tasks may run anywhere: there twins are of use.
    """
    root, events = tmp_path / "app", tmp_path / "events"
    markers, checkpoint = root / "markers", root / "checkpoint"
    events.mkdir()
    settings = [
        *SPECULATION,
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir={events.as_uri()}",
        "spark.eventLog.rolling.enabled=false",
        "spark.eventLog.compress=false",
        f"spark.executorEnv.{faults.ENVIRONMENT}={WRITTEN}=hang",
        f"spark.executorEnv.{faults.MARKERS}={markers}",
    ]
    losers: set[str] = set()
    root.mkdir()
    with (
        Standalone(tmp_path / "spark", daemons=2, hosts=HOSTS) as spark,
        driving(root, f"{COMMITTED}=hold", spark.master, settings) as driver,
    ):
        for _ in range(ROUNDS):
            until(driver, "an attempt that hangs", (markers / WRITTEN).exists)
            hold(markers, COMMITTED)
            pairs = until(driver, "its twin's blocks", partial(twins, checkpoint, frozenset(losers)))
            (markers / f"{WRITTEN}.go").touch()
            until(driver, "the epoch", lambda: holds(markers, COMMITTED))
            losers |= one_of_each(checkpoint, pairs)
            for marker in markers.glob(f"{WRITTEN}*"):
                marker.unlink()
            let_go(markers, COMMITTED)
        (markers / f"{WRITTEN}.go").touch()
        ended = driver.result()
    assert ended.code == 0, str(ended)
    assert len(losers) >= ROUNDS
    assert speculated(events) >= ROUNDS
    assert [r.retries for r in last_reports(LocalStore(checkpoint), EPOCHS)] == [0] * EPOCHS
    check(root, EPOCHS)
    assert losers <= stored(checkpoint), "nobody has named them, and nobody has looked for them"

    ended = drive(root, "", epochs=EPOCHS + 1)
    assert ended.code == 0, str(ended)
    check(root, EPOCHS + 1)
    assert not losers & stored(checkpoint), "collected at the next start"


def test_an_epoch_that_is_run_again_beside_an_attempt_that_has_written(tmp_path: Path) -> None:
    """Fault 7 with workers=N, where Spark speculates no more: both attempts are of the same worker."""
    with Cluster(tmp_path, workers=3, failpoints=[f"{WRITTEN}=hang", f"{COMMITTED}=hold"]) as cluster:
        cluster.backed_up()
        cluster.arm(WRITTEN)
        cluster.until("an attempt that hangs", lambda: cluster.fired(WRITTEN))
        pid = cluster.marked(WRITTEN)
        (slow,) = (w for w in cluster.workers() if pid in {p.pid for p in cluster.executor(w).family()})
        local = {path.name: epoch_of(path.name) for path in (cluster.local / slow).glob("[a-z]*.run.*")}
        epoch = max(e for e in local.values() if e is not None)
        first = {name for name, of in local.items() if of == epoch}
        assert epoch == cluster.epoch + 1
        other = next(w for w in cluster.workers() if w != slow)
        hold(cluster.markers, COMMITTED)
        cluster.kill(other)
        cluster.until("the epoch", lambda: holds(cluster.markers, COMMITTED))
        manifest = head(cluster.checkpoint)
        assert manifest is not None
        assert manifest.epoch == epoch
        runs = [run for state in manifest.operators.values() for run in state.runs if run.epoch == epoch]
        assert slow in {run.worker for run in runs}, "it has written them once more"
        assert not first & manifest.blocks()
        let_go(cluster.markers, COMMITTED)
        (cluster.markers / f"{WRITTEN}.go").touch()
        cluster.epochs(3)
        assert not first & set[str]().union(*(m.blocks() for m in manifests(cluster.checkpoint)))
        cluster.settled(3)
        cluster.finish()


def test_speculation_is_refused_with_workers(tmp_path: Path) -> None:
    """A twin would be on a worker without the state, and end at once, and the epoch would start over."""
    refused = r"expected spark\.speculation=false for an app with workers=N, got true"
    with (
        pytest.raises(AssertionError, match=refused),
        Cluster(tmp_path, workers=2, settings=["spark.speculation=true"]),
    ):
        pass
    assert not (tmp_path / "checkpoint").exists()


@contextmanager
def driving(root: Path, failpoints: str, master: str, settings: list[str]) -> Iterator["Future[Ended]"]:
    """The app on a cluster, until it ends; nobody is left hanging if a test fails."""
    with ThreadPoolExecutor(1) as pool:
        driver = pool.submit(drive, root, failpoints, epochs=EPOCHS, master=master, settings=settings)
        try:
            yield driver
        finally:
            (root / "markers" / f"{WRITTEN}.go").touch()
            let_go(root / "markers", COMMITTED)


def until(driver: "Future[Ended]", what: str, condition: Callable[[], Found | None]) -> Found:
    def look() -> Found | None:
        assert not driver.done(), f"waiting for {what}: {driver.result()}"
        return condition()

    return wait_until(what, look, PATIENCE_S)


def twins(checkpoint: Path, known: frozenset[str]) -> Attempts:
    """The runs that two attempts have written, by step, epoch and instance; but for what is known."""
    found: Attempts = defaultdict(set)
    for path in (checkpoint / "blocks").glob("[a-z]*.run.*"):
        found[tuple(path.name.split(".")[:3])].add(path.name)
    return {task: names for task, names in found.items() if len(names) > 1 and not names & known}


def one_of_each(checkpoint: Path, pairs: Attempts) -> set[str]:
    """The blocks of twins that did not come to count; of each pair the other one did."""
    manifest = head(checkpoint)
    assert manifest is not None
    for task, names in pairs.items():
        assert int(task[1]) == manifest.epoch
        assert len(names & manifest.blocks()) == 1, names
    return set[str]().union(*pairs.values()) - manifest.blocks()


def speculated(events: Path) -> int:
    """How many tasks Spark says it has started as twins."""
    (log,) = events.iterdir()
    lines = map(json.loads, log.read_text().splitlines())
    return sum(e["Event"] == "SparkListenerTaskStart" and e["Task Info"]["Speculative"] for e in lines)


def stored(checkpoint: Path) -> set[str]:
    return {path.name for path in (checkpoint / "blocks").iterdir()}


def check(root: Path, epochs: int) -> None:
    oracle, found = expected(epochs), published(root)
    assert not found.beyond(oracle)
    assert not oracle.beyond(found)
