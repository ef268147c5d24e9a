"""Pinned blocks outlive the manifests that named them, as long as they are pinned and no longer."""

from hypothesis import given, settings
from hypothesis import strategies as st

from blocks_kit import a_ref, new_refs, next_manifest, put_block, s3_store  # isort: skip
from springtide.blocks.block import DIRECTORY, BlockRef
from springtide.blocks.collect import RETAINED, SWEEP_EVERY, Collector, Garbage
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.store import Store
from springtide.ids import Epoch, PlanVersion


class Driver:
    """Commits manifests and collects after each, as an epoch does."""

    def __init__(self) -> None:
        self.store: Store = s3_store()
        self.log = ManifestLog(self.store)
        self.collector = Collector(self.log)
        self.collector.start(None)
        self.history: list[Manifest] = []
        self.written: list[str] = []
        """All blocks ever, oldest first; their names are random and would not sort the same twice."""

    def commit(self, pinned: set[str], *, keep: int = 0, blocks: int = 1, back: tuple[BlockRef, ...] = ()) -> Garbage:
        """One epoch that keeps some of its parent's runs, and may name older blocks anew."""
        parent = self.history[-1] if self.history else None
        manifest = next_manifest(parent, keep=keep, blocks=blocks)
        for ref in new_refs(manifest):
            self.written.append(put_block(self.store, ref).name)
        if back:
            runs = (*back, *manifest.operators["counts"].runs)
            manifest = Manifest(
                manifest.app,
                manifest.epoch,
                manifest.parent,
                PlanVersion(1),
                1,
                {"counts": OperatorState(runs)},
                manifest.outputs,
            )
        self.log.commit(manifest, parent)
        self.history.append(manifest)
        return self.collector.committed(manifest, pinned)

    @property
    def live(self) -> set[str]:
        return set().union(*(m.blocks() for m in self.history[-RETAINED:]))

    @property
    def there(self) -> set[str]:
        return {name.rpartition("/")[2] for name in self.store.list(DIRECTORY)}


@settings(max_examples=50, deadline=None)
@given(data=st.data(), epochs=st.integers(1, 10))
def test_what_is_live_or_pinned_stays_and_all_else_goes(data: st.DataObject, epochs: int) -> None:
    """Pins come and go at will; blocks that only a pin has kept may become live again."""
    driver = Driver()
    for _ in range(epochs):
        before = driver.there
        pinned = {name for name in driver.written if name in before and data.draw(st.booleans())}
        waiting = [
            ref for m in driver.history for ref in m.operators["counts"].runs if ref.name in before - driver.live
        ]
        back = tuple({ref.name: ref for ref in waiting if data.draw(st.booleans())}.values())
        keep, blocks = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
        garbage = driver.commit(pinned, keep=keep, blocks=blocks, back=back)
        assert not set(garbage.blocks) & (driver.live | pinned)
        assert driver.there == driver.live | pinned
        assert set(garbage.blocks) == before - driver.there


def test_a_block_goes_with_the_commit_after_which_nobody_pins_it() -> None:
    driver = Driver()
    driver.commit(set())
    old = driver.history[0].operators["counts"].runs[0].name
    for _ in range(5):
        assert old not in driver.commit({old}).blocks
    assert old in driver.there
    assert driver.commit(set()).blocks.count(old) == 1
    assert old not in driver.there
    assert old not in driver.commit(set()).blocks, "it is removed once"


def test_a_pin_does_not_hold_the_manifest_that_named_the_block() -> None:
    driver = Driver()
    driver.commit(set())
    old = driver.history[0].operators["counts"].runs[0].name
    for _ in range(RETAINED):
        driver.commit({old})
    assert driver.log.epochs() == [1, 2]


def test_a_pinned_block_that_became_live_again_goes_when_it_is_neither() -> None:
    driver = Driver()
    driver.commit(set())
    old = driver.history[0].operators["counts"].runs[0]
    for _ in range(RETAINED):
        driver.commit({old.name})
    driver.commit(set(), back=(old,))
    assert old.name in driver.there
    for _ in range(RETAINED - 1):
        driver.commit(set())
    assert old.name in driver.there
    driver.commit(set())
    assert old.name not in driver.there


def test_the_sweep_for_orphans_passes_by_what_is_pinned() -> None:
    store = s3_store()
    log = ManifestLog(store)
    collector = Collector(log)
    orphan = put_block(store, a_ref(3))
    parent = None
    for epoch in range(SWEEP_EVERY - 2, SWEEP_EVERY + 1):
        ref = put_block(store, a_ref(epoch))
        state = OperatorState((ref,))
        manifest = Manifest("app", Epoch(epoch), parent.id if parent else "", PlanVersion(1), 1, {"counts": state})
        garbage = collector.committed(manifest, {orphan.name} if epoch < SWEEP_EVERY else set())
        assert (orphan.name in garbage.blocks) == (epoch == SWEEP_EVERY)
        parent = manifest
    assert {name.rpartition("/")[2] for name in store.list(DIRECTORY)} == set().union(
        *(m.blocks() for m in collector._retained)
    )


def test_the_sweep_for_orphans_waits_until_nothing_is_being_deposited() -> None:
    """What a deposit writes has names that only its workers know before it ends."""
    store = s3_store()
    collector = Collector(ManifestLog(store))
    deposited = put_block(store, a_ref(3))
    parent = None
    swept_at = SWEEP_EVERY + 1
    for epoch in range(SWEEP_EVERY - 2, swept_at + 2):
        state = OperatorState((put_block(store, a_ref(epoch)),))
        parent = Manifest("app", Epoch(epoch), parent.id if parent else "", PlanVersion(1), 1, {"counts": state})
        garbage = collector.committed(parent, depositing=epoch < swept_at)
        assert (deposited.name in garbage.blocks) == (epoch == swept_at)
