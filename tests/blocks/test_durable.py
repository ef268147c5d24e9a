"""Durable checkpoints, and what is noted before going back to one."""

from dataclasses import replace
from pathlib import Path

import pytest

from springtide.blocks.durable import DurableLog, Replay
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore
from springtide.ids import Epoch, PlanVersion


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def lineage(log: ManifestLog, epochs: int) -> list[Manifest]:
    """Committed manifests of an app whose runs stay on its workers."""
    found: list[Manifest] = []
    for number in range(epochs):
        parent = found[-1] if found else None
        manifest = Manifest("app", Epoch(number), "" if parent is None else parent.id, PlanVersion(1), 1, durable=False)
        log.commit(manifest, parent)
        found.append(manifest)
    return found


def test_the_last_checkpoint_counts_and_is_durable(store: LocalStore) -> None:
    durable, manifests = DurableLog(store), lineage(ManifestLog(store), 3)
    assert durable.last() is None
    durable.commit(manifests[0])
    durable.commit(manifests[2])
    assert durable.last() == replace(manifests[2], durable=True)
    assert store.list("durable") == ["000000002.json"]
    durable.clear()
    assert durable.last() is None


def test_a_checkpoint_cut_short_does_not_count(store: LocalStore) -> None:
    durable, manifests = DurableLog(store), lineage(ManifestLog(store), 2)
    durable.commit(manifests[0])
    store.put("durable/000000001.json", manifests[1].encode()[:-5])
    found = durable.last()
    assert found is not None
    assert found.epoch == 0


def test_going_back_makes_the_checkpoint_the_head(store: LocalStore) -> None:
    log, durable = ManifestLog(store), DurableLog(store)
    manifests = lineage(log, 6)
    durable.commit(manifests[2])
    log.forget([Epoch(e) for e in range(4)])  # Collected long ago.
    head = durable.go_back(log)
    assert head == log.head() == replace(manifests[2], durable=True)
    assert log.epochs() == [2]
    again = Manifest("app", Epoch(3), head.id, PlanVersion(2), 2, durable=False)
    log.commit(again, head)
    assert log.head() == again


def test_going_back_to_the_beginning(store: LocalStore) -> None:
    log = ManifestLog(store)
    lineage(log, 2)
    assert DurableLog(store).go_back(log) is None
    assert log.epochs() == []


def test_what_is_to_be_repeated_is_noted_until_it_is(store: LocalStore) -> None:
    durable = DurableLog(store)
    assert durable.replay() is None
    replay = Replay(11, {Epoch(9): "v1\n{}\n9", Epoch(10): "v1\n{}\n10", Epoch(11): "v1\n{}\n11"})
    durable.note(replay)
    assert durable.replay() == replay
    durable.repeated()
    assert durable.replay() is None
