"""Bits flip in blocks on real workers, wherever in a file: the checksum tells, and others have what is right."""

import shutil
from pathlib import Path

import pytest
from chaos_kit import head
from cluster_kit import STEPS, Cluster, durable_reads, one_owner, retried, succeeded
from flipping import PLACES, by_origin, flip, is_right, rows_of, runs_of, true_copies
from holding import COPYING, HOLDING, between_epochs, held, let_go

from springtide.blocks.durable import DurableLog
from springtide.blocks.generation import current
from springtide.blocks.manifest import Manifest
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.migration.strategies import DEFAULT

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
STEP = STEPS[0]
KEYS = 4000
"""So many that an epoch changes few of them, and its state has several runs."""
DEPOSITED = "deposit.written"
EPOCHS = 8
NEVER = 1000
"""Epochs from one durable checkpoint to the next: more than there are."""


def test_flips_in_an_owners_blocks(tmp_path: Path) -> None:
    """Fault 16: neither the next epoch nor a copy goes on with them: durable ones take their place."""
    with Cluster(tmp_path, workers=2, keys=KEYS, failpoints=HOLDING) as cluster:
        cluster.backed_up()
        victim = cluster.workers()[0]
        place = cluster.local / victim
        for where in PLACES:
            with held(cluster, COPYING):  # So that an epoch comes to them first.
                with between_epochs(cluster) as last:
                    runs = runs_of(last, victim)
                    for run in runs:
                        flip(place / run.name, where)
                cluster.epochs(2)
                assert durable_reads(cluster.reports(last.epoch)) > 0, where
                assert 1 <= len(retried(cluster.reports(last.epoch))) <= 2, where
                assert all(is_right(place / run.name, run) for run in runs if (place / run.name).exists()), where

        # A copy comes to them first.
        with held(cluster, COPYING), between_epochs(cluster) as last:
            runs = runs_of(last, victim)
            for run in runs:
                flip(place / run.name, "body")
            let_go(cluster.markers, COPYING)
            cluster.until("a block that was fetched again", lambda: any(is_right(place / r.name, r) for r in runs))
        cluster.epochs(2)
        assert len(retried(cluster.reports(last.epoch))) <= 2
        assert victim in cluster.workers(), "it is still the one that owns what it owned"
        cluster.settled(2)
        cluster.finish()
        assert true_copies(cluster)


def test_flips_in_a_replicas_blocks(tmp_path: Path) -> None:
    """Fault 16: who is to take slices over from copies that have rotted says so, and gets their durable state."""
    with Cluster(tmp_path, workers=2, keys=KEYS, failpoints=HOLDING) as cluster:
        for where in PLACES:
            flip_what_a_standby_has(cluster, where)
        assert one_owner(cluster)
        cluster.finish()
        assert true_copies(cluster)


def flip_what_a_standby_has(cluster: Cluster, where: str) -> None:
    """Copies of runs, and the rows of epochs since; then let it take over."""
    cluster.backed_up()
    owners = cluster.owners()[STEP]
    owner, standby = sorted(cluster.workers(), key=lambda w: -len(owners.get(w, ())))
    slices = owners[owner] & cluster.standby(standby)
    cluster.until("one that is ready", lambda: copied(cluster, head(cluster.checkpoint), owner))
    with held(cluster, COPYING):  # Else it would get others.
        with between_epochs(cluster) as last:
            place = cluster.local / standby
            parts, kept = (list(place.glob(f"{STEP}.*.{kind}.*")) for kind in ("part", "backup"))
            for file in [*parts, *kept]:
                flip(file, where)
            cluster.client.move(STEP, str(SliceSet.of(slices)), standby, "handover")
        cluster.epochs(2)
        assert durable_reads(cluster.reports(last.epoch)) > 0, where
        assert 1 <= len(retried(cluster.reports(last.epoch))) <= 2, where
    assert succeeded(cluster.migrated()), cluster.story()
    assert slices <= cluster.owners()[STEP][standby]
    assert kept
    cluster.until("the flipped copies to be let go", lambda: not any(part.exists() for part in parts))


def test_flipped_blocks_are_not_made_durable(tmp_path: Path) -> None:
    """Fault 16: a worker is about to store its state for the first time; its neighbour's copies are stored instead."""
    points = [f"{DEPOSITED}=hold"]
    with Cluster(tmp_path, workers=2, keys=KEYS, durable_every=NEVER, epochs=EPOCHS, failpoints=points) as cluster:
        victim = cluster.workers()[0]
        with held(cluster, DEPOSITED, cluster.executor(victim)):  # The input has ended; it has stored one block.
            last = head(cluster.checkpoint)
            assert last is not None
            cluster.until("copies of every run", lambda: copied(cluster, last, victim))
            stored = {path.name for path in (cluster.checkpoint / "blocks").glob("*.run.*")}
            bad = [run for run in runs_of(last, victim) if run.name not in stored]
            shutil.copytree(cluster.local / victim, tmp_path / "true")
            for number, run in enumerate(bad):
                flip(cluster.local / victim / run.name, PLACES[number % len(PLACES)])
        assert bad
        made = cluster.until("a durable checkpoint", lambda: checkpoint(cluster, last))
        assert not {run.name for run in bad} & made.state_blocks()
        assert any(".part." in name for name in made.state_blocks())
        kept = [run for state in made.operators.values() for run in state.runs]
        assert all(is_right(cluster.checkpoint / run.path, run) for run in kept)
        deposited = by_origin(cluster.checkpoint / run.path for run in kept)
        for origin, true in by_origin(tmp_path / "true" / run.name for run in bad).items():
            assert not rows_of(true) - rows_of(deposited[origin]), origin
        cluster.client.scale(3, DEFAULT)
        cluster.settled(3)
        cluster.finish()


def copied(cluster: Cluster, manifest: Manifest | None, worker: str) -> bool:
    """Whether another worker has copies of all that a worker has written of an epoch's state."""
    assert manifest is not None
    (other,) = set(cluster.workers()) - {worker}
    there = by_origin((cluster.local / other).glob("[a-z]*.part.*"))
    return all((run.operator, run.epoch) in there for run in runs_of(manifest, worker))


def checkpoint(cluster: Cluster, manifest: Manifest) -> Manifest | None:
    """The durable checkpoint of an epoch, once it is there."""
    found = DurableLog(current(LocalStore(cluster.checkpoint))).last()
    return found if found is not None and found.epoch >= manifest.epoch else None
