"""Drivers that commit and crash at any call: what is committed stays committed."""

import pytest
from blocks_kit import (
    AFTER,
    BEFORE,
    Crash,
    CrashingStore,
    S3Like,
    everything,
    next_manifest,
    s3_store,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from springtide.blocks.errors import LineageBroken, ManifestConflict, StoreFailed
from springtide.blocks.log import DIRECTORY, TORN, ManifestLog
from springtide.blocks.manifest import Manifest


def path_of(epoch: int) -> str:
    return f"{DIRECTORY}/{epoch:09d}.json"


class Lineage(RuleBasedStateMachine):
    """Drivers that commit, crash at any call and start again; the store is all that lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.store = s3_store()
        self.history: list[Manifest] = []
        """What is committed, as far as anybody may rely on it."""
        self.pending: Manifest | None = None
        """Was being committed when its driver died: it may count, or not."""
        self.torn = 0

    @property
    def head(self) -> Manifest | None:
        return self.history[-1] if self.history else None

    @initialize(driver=st.integers(1, 3))
    def start(self, driver: int) -> None:
        self.driver = driver

    @precondition(lambda self: self.pending is None)
    @rule(keep=st.integers(0, 2), crash=st.one_of(st.none(), st.integers(1, 3)), when=st.sampled_from([BEFORE, AFTER]))
    def commit(self, keep: int, crash: int | None, when: str) -> None:
        manifest = next_manifest(self.head, keep=keep, driver=self.driver)
        try:
            ManifestLog(CrashingStore(self.store, crash, when)).commit(manifest, self.head)
        except Crash:
            self.pending = manifest
        else:
            self.history.append(manifest)

    @precondition(lambda self: self.pending is None)
    @rule(outcome=st.sampled_from([BEFORE, AFTER]))
    def commit_while_the_store_fails(self, outcome: str) -> None:
        """A put that failed is an error; one that failed and landed is a success."""
        manifest = next_manifest(self.head, driver=self.driver)
        self.bucket.fail = lambda call, path: outcome if call == "put" else None
        try:
            if outcome == BEFORE:
                with pytest.raises(StoreFailed):
                    ManifestLog(self.store).commit(manifest, self.head)
            else:
                ManifestLog(self.store).commit(manifest, self.head)
                self.history.append(manifest)
        finally:
            self.bucket.fail = lambda call, path: None

    @property
    def bucket(self) -> S3Like:
        assert isinstance(self.store.filesystem, S3Like)
        return self.store.filesystem

    @precondition(lambda self: self.history and self.pending is None)
    @rule()
    def commit_again(self) -> None:
        before = everything(self.store)
        parent = self.history[-2] if len(self.history) > 1 else None
        ManifestLog(self.store).commit(self.history[-1], parent)
        assert everything(self.store) == before

    @precondition(lambda self: self.history and self.pending is None)
    @rule()
    def commit_another_manifest_for_the_same_epoch(self) -> None:
        before = everything(self.store)
        parent = self.history[-2] if len(self.history) > 1 else None
        with pytest.raises(ManifestConflict, match=f"epoch {self.history[-1].epoch} is committed already"):
            ManifestLog(self.store).commit(next_manifest(parent), parent)
        assert everything(self.store) == before

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def commit_on_a_wrong_parent(self, data: st.DataObject) -> None:
        """Another epoch, or the right epoch of another history: a replay under a different parent."""
        before = everything(self.store)
        sibling = next_manifest(self.history[-2] if len(self.history) > 1 else None, driver=9)
        wrong = data.draw(st.sampled_from([None, *self.history[:-1], next_manifest(self.head), sibling]))
        with pytest.raises(LineageBroken):
            ManifestLog(self.store).commit(next_manifest(self.head), wrong)
        assert everything(self.store) == before

    @precondition(lambda self: self.history and self.pending is None)
    @rule(cut=st.floats(0, 1, exclude_max=True))
    def tear(self, cut: float) -> None:
        """The last manifest loses its end: it does not count, and its place is free."""
        torn = self.history.pop()
        data = torn.encode()
        self.store.put(path_of(torn.epoch), data[: int(len(data) * cut)])
        self.torn += 1
        self.restart(None, BEFORE)

    @rule(crash=st.one_of(st.none(), st.integers(1, 5)), when=st.sampled_from([BEFORE, AFTER]))
    def restart(self, crash: int | None, when: str) -> None:
        """A new driver knows what the store knows. It may die while it finds out; then comes the next."""
        try:
            found = ManifestLog(CrashingStore(self.store, crash, when)).head()
        except Crash:
            found = ManifestLog(self.store).head()
        if self.pending is not None:
            if found is not None and found.id == self.pending.id:
                self.history.append(self.pending)
            self.pending = None
        assert found == self.head

    @invariant()
    def the_log_is_the_history(self) -> None:
        if self.pending is None:
            log = ManifestLog(self.store)
            assert log.head() == self.head
            assert log.epochs() == [m.epoch for m in self.history]
            assert [log.read(m.epoch).id for m in self.history] == [m.id for m in self.history]
            assert [m.parent for m in self.history] == ["", *(m.id for m in self.history)][: len(self.history)]
            assert len(self.store.list(TORN)) <= self.torn


TestLineage = Lineage.TestCase
TestLineage.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
