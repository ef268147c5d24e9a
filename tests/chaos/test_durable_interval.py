"""State that is durable once in a few epochs: whatever is lost in between is repeated, and sinks see nothing of it."""

import shutil
from pathlib import Path

import pytest
from chaos_kit import Site, head, manifests
from cluster_kit import Cluster, durable_reads

from springtide.blocks.block import epoch_of
from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.store import LocalStore
from springtide.metrics.report import EpochReport

pytestmark = [pytest.mark.chaos, pytest.mark.spark]
EPOCHS = 9
EVERY = 3


def replayed(reports: list[EpochReport]) -> list[int]:
    return [r.epoch for r in reports if r.replayed]


def base(site: Site | Cluster) -> int:
    """The epoch of the last durable checkpoint."""
    found = DurableLog(current(LocalStore(site.checkpoint))).last()
    return -1 if found is None else found.epoch


@pytest.mark.slow
def test_a_driver_that_lost_its_workers_repeats_what_was_not_durable(site: Site) -> None:
    site.crash(EPOCHS, "publish.before=oserror@7", durable_every=EVERY)
    durable, last = base(site), head(site.checkpoint)
    assert last is not None
    assert (durable < last.epoch, last.epoch, last.durable) == (True, 7, False)
    # Another size of epochs: those that are repeated must have the very rows they had.
    reports = site.run(EPOCHS, local="elsewhere", durable_every=EVERY, epoch_rows=75, until="epochs=1")
    assert replayed(reports) == list(range(durable + 1, 8))
    assert [r.rows_in for r in reports][:-1] == [150] * (7 - durable)
    site.run(EPOCHS, local="elsewhere", durable_every=EVERY)
    site.check_counts(EPOCHS)


@pytest.mark.slow
def test_state_that_is_gone_while_the_app_runs(site: Site) -> None:
    wiped = []
    pinned = set[str]()

    def wipe(report: EpochReport) -> None:
        checkpoint = DurableLog(current(LocalStore(site.checkpoint))).last()
        if checkpoint is not None:
            pinned.update(checkpoint.state_blocks())
        if report.epoch == 6 and not wiped:
            wiped.append(base(site))
            shutil.rmtree(site.root / "local")

    reports = site.run(EPOCHS, durable_every=EVERY, on_epoch=wipe)
    assert replayed(reports) == list(range(wiped[0] + 1, 7))
    site.check(EPOCHS)
    needed = set[str]().union(*(m.blocks() for m in manifests(site.checkpoint)))
    local = {path.name: epoch_of(path.name) for path in site.blocks().iterdir()}
    left = {name for name, epoch in local.items() if epoch is not None and epoch < EPOCHS - EVERY}
    assert local
    assert not left - needed - pinned, "what was written before going back is cleared like everything else"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["replay.noted", "epoch.start", "manifest.after", "publish.before"])
def test_a_driver_that_fails_while_it_repeats(site: Site, point: str) -> None:
    site.crash(EPOCHS, "manifest.after=oserror@5", durable_every=EVERY)
    at = {"replay.noted": "", "publish.before": "@5"}.get(point, "@4")
    site.crash(EPOCHS, f"{point}=oserror{at}", durable_every=EVERY, local="second")
    site.run(EPOCHS, durable_every=EVERY, local="third")
    site.check(EPOCHS)


@pytest.mark.slow
def test_drivers_that_die_after_one_repeated_epoch_each_get_to_the_end(site: Site) -> None:
    site.crash(EPOCHS, "publish.before=oserror@6", durable_every=100)
    for life in range(EPOCHS):
        reached = base(site)
        if reached >= 5:
            break
        dies = f"epoch.start=oserror@{reached + 2}"
        site.crash(EPOCHS, dies, durable_every=100, local=f"life-{life}")
        assert base(site) == reached + 1, "what a life has repeated is never repeated again"
    site.run(EPOCHS, durable_every=100, local="last")
    site.check(EPOCHS)


@pytest.mark.slow
def test_a_driver_that_stops_in_order_leaves_nothing_to_repeat(site: Site) -> None:
    site.run(EPOCHS, durable_every=EVERY, until="epochs=5")
    assert base(site) == 4
    reports = site.run(EPOCHS, durable_every=EVERY, local="elsewhere")
    # Spark may not have logged the last epoch as done: it is then published once more, and not computed.
    assert set(replayed(reports)) <= {4}
    site.check(EPOCHS)


@pytest.mark.slow
def test_the_interval_can_change_between_two_runs(site: Site) -> None:
    site.run(EPOCHS, until="epochs=2")
    site.crash(EPOCHS, "publish.before=oserror@4", durable_every=100)
    assert base(site) == 1
    reports = site.run(EPOCHS, local="second", until="epochs=2")
    assert replayed(reports) == [2, 3, 4]
    assert base(site) == -1, "every epoch is durable now"
    site.run(EPOCHS, local="third", durable_every=2)
    site.check(EPOCHS)


@pytest.mark.slow
def test_the_store_holds_no_more_than_it_must(site: Site) -> None:
    site.run(EPOCHS, durable_every=EVERY)
    needed = set[str]().union(*(m.blocks() for m in manifests(site.checkpoint)))
    durable = DurableLog(current(LocalStore(site.checkpoint))).last()
    assert durable is not None
    there = {path.name for path in Path(site.checkpoint, "blocks").iterdir()}
    assert durable.blocks() <= there
    assert there <= needed | durable.blocks()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_workers_that_lose_every_copy(tmp_path: Path) -> None:
    with Cluster(tmp_path, workers=3, durable_every=6) as cluster:
        # A neighbour has all that the dead one had: nothing is read from the store, nothing repeated.
        cluster.backed_up()
        before = cluster.mid_epoch() - 1
        cluster.kill(cluster.workers()[1])
        cluster.epochs(3)
        cluster.settled(3)
        assert durable_reads(cluster.reports(before)) == 0, cluster.story()
        assert replayed(cluster.reports(before)) == []

        # What the heir has of the dead one's runs becomes durable in their place.
        after = cluster.epoch
        cluster.until("a durable checkpoint after the loss", lambda: base(cluster) > after)

        # A worker and the one that stands by for it die together: the app goes back to that checkpoint.
        cluster.mid_epoch()
        cluster.kill(*cluster.workers()[:2])
        cluster.until("epochs that are repeated", lambda: replayed(cluster.reports()))
        cluster.until("the end of it", lambda: not cluster.reports()[-1].replayed)
        cluster.epochs(3)
        cluster.settled(3)
        cluster.finish()
