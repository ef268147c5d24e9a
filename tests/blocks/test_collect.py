"""Garbage collection: whatever dies while it runs, what a manifest needs stays, and the rest goes."""

from pathlib import Path

import pytest
from blocks_kit import (
    AFTER,
    BEFORE,
    Crash,
    CrashingStore,
    a_ref,
    crash_in_the_file_system,
    new_refs,
    next_manifest,
    put_block,
    s3_store,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from springtide.blocks.block import DIRECTORY, OUTPUT, RUN, epoch_of
from springtide.blocks.collect import RETAINED, SWEEP_EVERY, Collector, Garbage
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore, Store
from springtide.ids import Epoch

STRANGER = f"{DIRECTORY}/notes.txt"


class Collection(RuleBasedStateMachine):
    """Epochs, failed attempts, zombies, torn manifests and drivers that die at any call."""

    def __init__(self) -> None:
        super().__init__()
        self.store = s3_store()
        self.history: list[Manifest] = []
        self.retained: list[Manifest] = []
        """What has to be readable: the last manifests, less those lost when the last was torn."""
        self.collector: Collector | None = None
        self.in_flight: list[str] = []
        """Blocks of the epoch in flight that its manifest will name."""

    @property
    def head(self) -> Manifest | None:
        return self.retained[-1] if self.retained else None

    @property
    def next_epoch(self) -> int:
        return 0 if self.head is None else self.head.epoch + 1

    @initialize()
    def a_stranger(self) -> None:
        self.store.put(STRANGER, b"somebody's notes")

    @rule(crash=st.one_of(st.none(), st.integers(1, 12)), when=st.sampled_from([BEFORE, AFTER]))
    def start(self, crash: int | None, when: str) -> None:
        """A new driver, whose predecessor may still have a task that writes blocks of the epoch in flight."""
        self.collector = None
        store = CrashingStore(self.store, crash, when)
        try:
            log = ManifestLog(store)
            head = log.head()
            assert head == self.head
            collector = Collector(log)
            collector.start(head)
        except Crash:
            return
        store.left = None
        self.collector = collector
        if head is not None:
            kept = [log.read(epoch) for epoch in log.epochs()]
            live = set().union(*(m.blocks() for m in kept))
            assert self.old_blocks() <= live, "a clean start sweeps up everything of committed epochs"
            assert kept == self.history[-len(kept) :]
            assert len(kept) <= RETAINED

    @rule(kind=st.sampled_from([RUN, OUTPUT]))
    def an_attempt_fails(self, kind: str) -> None:
        """It leaves a block that no manifest will name."""
        put_block(self.store, a_ref(self.next_epoch, kind))

    @precondition(lambda self: self.next_epoch > 0)
    @rule(back=st.integers(1, 3))
    def a_zombie_writes(self, back: int) -> None:
        """A block of an epoch that was committed long ago."""
        put_block(self.store, a_ref(max(0, self.next_epoch - back)))

    @precondition(lambda self: self.collector is not None)
    @rule(
        keep=st.integers(0, 3),
        blocks=st.integers(0, 2),
        sweep=st.booleans(),
        crash=st.one_of(st.none(), st.integers(1, 14)),
        when=st.sampled_from([BEFORE, AFTER]),
    )
    def epoch(self, keep: int, blocks: int, sweep: bool, crash: int | None, when: str) -> None:
        """Write blocks, commit, collect; the driver may die at any of it."""
        collector = self.collector
        assert collector is not None
        manifest = next_manifest(self.head, keep=keep, blocks=blocks)
        store = CrashingStore(self.store, crash, when)
        collector.log = ManifestLog(store)
        try:
            for ref in new_refs(manifest):
                put_block(store, ref)
            if sweep:
                self.in_flight = [ref.name for ref in new_refs(manifest)]
                Collector(ManifestLog(self.store)).start(self.head)
                assert self.in_flight_is_there(), "a delayed write of the epoch in flight survives a sweep"
            collector.log.commit(manifest, self.head)
            self.commit(manifest)
            collector.committed(manifest)
        except Crash:
            self.collector = None
            landed = ManifestLog(self.store).head()
            if landed is not None and landed.id == manifest.id and manifest not in self.history:
                self.commit(manifest)
        collector.log = ManifestLog(self.store)

    def commit(self, manifest: Manifest) -> None:
        self.history.append(manifest)
        self.retained = [*self.retained, manifest][-RETAINED:]

    @precondition(lambda self: len(self.retained) == RETAINED)
    @rule(size=st.integers(0, 60))
    def tear(self, size: int) -> None:
        """The medium fails: the last manifest is cut short. The driver starts again on the one before it."""
        torn = self.retained.pop()
        self.history.remove(torn)
        self.store.put(f"manifests/{torn.epoch:09d}.json", torn.encode()[:size])
        self.collector = None

    @invariant()
    def what_a_retained_manifest_needs_is_there(self) -> None:
        there = set(self.store.list(DIRECTORY))
        for manifest in self.retained:
            assert manifest.blocks() <= there
        assert STRANGER.rpartition("/")[2] in there, "what is no block is none of our business"

    def old_blocks(self) -> set[str]:
        """Blocks in the store whose epoch is committed."""
        found = ((name, epoch_of(name)) for name in self.store.list(DIRECTORY))
        return {name for name, epoch in found if epoch is not None and epoch < self.next_epoch}

    def in_flight_is_there(self) -> bool:
        return set(self.in_flight) <= set(self.store.list(DIRECTORY))


TestCollection = Collection.TestCase
TestCollection.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)


def run_epochs(store: Store, epochs: int, *, keep: int = 0) -> tuple[list[Manifest], Collector]:
    log = ManifestLog(store)
    collector, head = Collector(log), log.head()
    collector.start(head)
    history: list[Manifest] = []
    for _ in range(epochs):
        manifest = next_manifest(head, keep=keep)
        for ref in new_refs(manifest):
            put_block(store, ref)
        log.commit(manifest, head)
        collector.committed(manifest)
        history.append(manifest)
        head = manifest
    return history, collector


def test_after_each_commit_only_what_the_retained_manifests_name_is_left() -> None:
    store = s3_store()
    for epochs in range(1, 5):
        history, _ = run_epochs(store, 1)
        log = ManifestLog(store)
        retained = [log.read(e) for e in log.epochs()]
        assert len(retained) == min(epochs, RETAINED)
        assert retained[-1] == history[-1]
        assert set(store.list(DIRECTORY)) == set().union(*(m.blocks() for m in retained))


def test_a_run_that_lives_on_is_kept_however_old_it_is() -> None:
    store = s3_store()
    history, _ = run_epochs(store, 10, keep=1)
    base = history[0].operators["counts"].runs[0].name
    assert base in store.list(DIRECTORY)
    assert base in history[-1].blocks()


def test_orphans_of_failed_attempts_go_with_the_next_start_after_the_commit() -> None:
    store = s3_store()
    run_epochs(store, 3)
    orphan = put_block(store, a_ref(3))
    run_epochs(store, 1)
    assert orphan.name in store.list(DIRECTORY), "its epoch was in flight: it might have been a delayed write"
    run_epochs(store, 1)
    assert orphan.name not in store.list(DIRECTORY)


def test_a_long_running_driver_sweeps_too() -> None:
    store = s3_store()
    orphan = put_block(store, a_ref(2))
    run_epochs(store, SWEEP_EVERY - 1)
    assert orphan.name in store.list(DIRECTORY)
    store = s3_store()
    orphan, ahead = put_block(store, a_ref(2)), put_block(store, a_ref(SWEEP_EVERY))
    run_epochs(store, SWEEP_EVERY)
    assert orphan.name not in store.list(DIRECTORY)
    assert ahead.name in store.list(DIRECTORY), "a later epoch's block is not judged yet"


def test_a_sweep_leaves_blocks_of_the_epoch_in_flight() -> None:
    store = s3_store()
    run_epochs(store, 2)
    delayed = put_block(store, a_ref(2))
    assert delayed.name not in Collector(ManifestLog(store)).start(ManifestLog(store).head()).blocks
    assert delayed.name in store.list(DIRECTORY)


def test_a_new_checkpoint_has_no_garbage() -> None:
    store = s3_store()
    put_block(store, a_ref(0))
    assert Collector(ManifestLog(store)).start(None) == Garbage()
    assert len(store.list(DIRECTORY)) == 1


def test_what_was_removed_is_said_so_that_workers_can_forget_it_too() -> None:
    store = s3_store()
    history, collector = run_epochs(store, RETAINED)
    third = next_manifest(history[-1])
    ManifestLog(store).commit(third, history[-1])
    garbage = collector.committed(third)
    assert set(garbage.blocks) == history[0].blocks()
    assert garbage.manifests == (Epoch(0),)


def test_a_failpoint_can_name_the_epoch_whose_collection_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPRINGTIDE_FAILPOINTS", "gc.delete=oserror@3")
    store = s3_store()
    with pytest.raises(OSError, match=r"gc\.delete"):
        run_epochs(store, 10)
    assert ManifestLog(store).epochs() == [1, 2, 3], "committed, and what it made superfluous is not gone yet"


def test_after_a_torn_manifest_the_one_before_it_is_complete() -> None:
    store = s3_store()
    history, _ = run_epochs(store, 5, keep=1)
    store.put("manifests/000000004.json", b"")
    head = ManifestLog(store).head()
    assert head == history[3]
    assert head.blocks() <= set(store.list(DIRECTORY))
    Collector(ManifestLog(store)).start(head)
    assert head.blocks() <= set(store.list(DIRECTORY))


@pytest.mark.parametrize("directory", ["blocks", "manifests"])
def test_a_start_tidies_up_what_cut_short_writes_left(tmp_path: Path, directory: str) -> None:
    store = LocalStore(tmp_path)
    run_epochs(store, 2)
    left = tmp_path / directory / ".x.123.tmp"
    left.write_bytes(b"half")
    Collector(ManifestLog(store)).start(ManifestLog(store).head())
    assert not left.exists()


def test_a_crash_at_any_system_call_of_commit_and_collection_loses_nothing(tmp_path: Path) -> None:
    """On a real directory, system call by system call."""
    for calls in range(60):
        store = LocalStore(tmp_path / str(calls))
        history, collector = run_epochs(store, 3, keep=1)
        manifest = next_manifest(history[-1], keep=1)
        with crash_in_the_file_system(calls):
            try:
                for ref in new_refs(manifest):
                    put_block(store, ref)
                collector.log.commit(manifest, history[-1])
                collector.committed(manifest)
            except Crash:
                crashed = True
            else:
                crashed = False
        head = ManifestLog(store).head()
        assert head in (history[-1], manifest)
        before = history[-2] if head == history[-1] else history[-1]
        assert before.blocks() | head.blocks() <= set(store.list(DIRECTORY))
        run_epochs(store, 1)
        Collector(ManifestLog(store)).start(ManifestLog(store).head())
        retained = [ManifestLog(store).read(e) for e in ManifestLog(store).epochs()]
        assert set(store.list(DIRECTORY)) == set().union(*(m.blocks() for m in retained))
        if not crashed:
            return
    pytest.fail("it never came to its end")
