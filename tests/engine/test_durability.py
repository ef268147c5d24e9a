"""When durable checkpoints are made, what they cover, and what a history has to repeat."""

import threading
from collections.abc import Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from springtide.blocks.block import BlockRef
from springtide.blocks.durable import DurableLog
from springtide.blocks.log import ManifestLog
from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.engine.durability import checkpoints as durability_module
from springtide.engine.durability.checkpoints import LATE, REST_S, Durability
from springtide.engine.durability.history import CannotRepeat, History
from springtide.engine.durability.interval import Interval
from springtide.engine.pool.store_job import whole, with_deposits
from springtide.engine.worker.store import Deposit
from springtide.ids import Epoch, PlanVersion, SliceId, WorkerId
from springtide.testing import ManualClock
from springtide.waits import WaitedTooLong


def run(name: str, slices: str, epoch: int = 0) -> BlockRef:
    return BlockRef(name, "count", Epoch(epoch), 1, 10, 7, SliceSet.parse(slices), worker="1")


def manifest(epoch: int, *runs: BlockRef) -> Manifest:
    return Manifest("app", Epoch(epoch), "", PlanVersion(1), 1, {"count": OperatorState(runs, epoch)}, durable=False)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


class Depositor:
    """Deposits that end when they may."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], Set[str]]] = []
        """By deposit: the keys of each state, and what was stored before."""
        self.go_on = threading.Event()
        self.works = True

    def __call__(self, states: Sequence[States], stored: Set[str]) -> list[States] | None:
        self.asked.append(([state["count"].keys for state in states if state], stored))
        assert self.go_on.wait(30)
        return list(states) if self.works else None


def test_a_deposit_that_ends_while_garbage_is_looked_for_is_pinned(store: LocalStore) -> None:
    """Its blocks have names that were not known a moment ago."""
    durability = Durability(DurableLog(store), Interval(3), Depositor(), None)

    class Ending(Future[States | None]):
        def done(self) -> bool:
            durability._base = manifest(0, run("deposited", "0-7", 0))
            return True

    durability._under_way = Future()
    assert durability.pins() == (True, set())
    durability._under_way = Ending()
    assert durability.pins() == (False, {"deposited"})


def test_one_checkpoint_at_a_time_every_so_many_epochs(store: LocalStore) -> None:
    depositor = Depositor()
    durability = Durability(DurableLog(store), Interval(3), depositor, None)
    epochs = [manifest(e, run(f"r{e}", "0-7", e)) for e in range(8)]
    for epoch in epochs[:5]:
        durability.committed(epoch)
        assert not durability.covers(epoch)
    assert durability.pinned() == {"r2"}
    depositor.go_on.set()
    durability.wait()
    assert durability.covers(epochs[2])
    durability.committed(epochs[5])
    durability.wait()
    assert [keys for keys, _ in depositor.asked] == [[2], [5]]
    assert depositor.asked[1][1] == {"r2"}, "what is durable is not stored again"
    assert durability.pinned() == {"r5"}


def test_an_epoch_waits_for_a_checkpoint_that_is_late(store: LocalStore) -> None:
    depositor = Depositor()
    durability = Durability(DurableLog(store), Interval(2), depositor, None)
    late = 2 * (1 + LATE) - 1
    for e in range(late):
        durability.committed(manifest(e))
    waiting = threading.Thread(target=durability.committed, args=[manifest(late)])
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    depositor.go_on.set()
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_checkpoint_that_could_not_be_made_is_tried_again(store: LocalStore) -> None:
    depositor = Depositor()
    depositor.go_on.set()
    depositor.works = False
    durability = Durability(DurableLog(store), Interval(2), depositor, None)
    for e in range(3):
        durability.committed(manifest(e))
        durability.wait()
    assert [keys for keys, _ in depositor.asked] == [[1], [2]]
    assert DurableLog(store).last() is None
    depositor.works = True
    durability.finish(manifest(3))
    assert durability.covers(manifest(3))


def test_a_checkpoint_is_made_once_in_a_while(store: LocalStore) -> None:
    depositor, now = Depositor(), [100.0]
    depositor.go_on.set()
    durability = Durability(DurableLog(store), Interval.of("30 seconds"), depositor, None, lambda: now[0])
    for e, seconds in enumerate([10, 19, 29, 31, 40, 60, 62]):
        now[0] = 100.0 + seconds
        durability.committed(manifest(e))
        durability.wait()
    assert [keys for keys, _ in depositor.asked] == [[3], [6]]


def test_an_app_at_rest_makes_its_last_epoch_durable_and_only_once(store: LocalStore) -> None:
    depositor, clock = Depositor(), ManualClock()
    depositor.go_on.set()
    durability = Durability(DurableLog(store), Interval(100), depositor, None, clock)
    last = manifest(4)
    durability.committed(last)
    durability.idle(last)
    assert not depositor.asked, "rows may come at any moment"
    clock.advance(REST_S)
    depositor.works = False
    for _ in range(3):
        durability.idle(last)
        durability.wait()
    assert len(depositor.asked) == 1, "one that could not be made is not tried again at once"
    depositor.works = True
    clock.advance(REST_S)
    for _ in range(3):
        durability.idle(last)
        durability.wait()
        clock.advance(REST_S)
    assert [keys for keys, _ in depositor.asked] == [[4], [4]]
    assert durability.covers(last)


def test_an_app_at_rest_keeps_to_a_shorter_interval_of_time(store: LocalStore) -> None:
    depositor, clock = Depositor(), ManualClock()
    depositor.go_on.set()
    durability = Durability(DurableLog(store), Interval.of("3 seconds"), depositor, None, clock)
    durability.committed(manifest(0))
    clock.advance(3)
    durability.idle(manifest(0))
    durability.wait()
    assert durability.covers(manifest(0))


def test_epochs_that_are_repeated_are_durable_after_the_first_and_then_ever_further_apart(store: LocalStore) -> None:
    depositor = Depositor()
    depositor.go_on.set()
    durability = Durability(DurableLog(store), Interval(100), depositor, None)
    for e in range(20):
        durability.committed(manifest(e), repeated=True)
        last = DurableLog(store).last()
        assert last is not None, "waited for"
    assert [keys for keys, _ in depositor.asked] == [[0], [2], [6], [14]]


def test_an_interval_is_of_epochs_or_of_time() -> None:
    assert Interval.of("8") == Interval.of(8) == Interval(8)
    assert Interval.of("1 minute").seconds == 60
    assert Interval.of("1 minute").epochs > 1
    for bad in (0, "0", "0 seconds"):
        with pytest.raises(ValueError, match="expected a number of epochs from 1, or a time"):
            Interval.of(bad)
    with pytest.raises(ValueError, match="is not a duration"):
        Interval.of("often")


def test_what_is_captured_is_stored_with_the_last_epoch_at_once(store: LocalStore) -> None:
    depositor = Depositor()
    depositor.go_on.set()
    durability = Durability(DurableLog(store), Interval(9), depositor, None)
    last, captured = manifest(3, run("r3", "0-7", 3)), {"count": OperatorState((run("r4", "0-7", 4),), 40)}
    assert durability.now(last, captured) == captured
    assert durability.covers(last)
    assert durability.now(last, captured) == captured
    assert durability.now(last, {}) == {}
    assert depositor.asked == [([40, 3], set()), ([40], {"r3"})], "what is durable is not stored again"
    depositor.works = False
    assert durability.now(manifest(4), captured) is None
    assert DurableLog(store).last() == replace(last, durable=True)


def test_every_epoch_is_durable_by_default(store: LocalStore) -> None:
    DurableLog(store).commit(manifest(0))
    durability = Durability(DurableLog(store), Interval(1), Depositor(), replace(manifest(4), durable=True))
    durability.committed(manifest(5))
    durability.finish(manifest(5))
    assert durability.covers(manifest(5))
    assert not durability.pinned()
    assert DurableLog(store).last() is None


def test_parts_stand_in_the_place_of_a_run_that_nobody_has_whole() -> None:
    here, shared = run("here", "0-3", 1), run("shared", "0-7", 2)
    part = replace(run("part", "4-7", 2), worker="2")
    deposits = [
        Deposit(shared, frozenset(map(SliceId, range(4))), WorkerId("1")),
        Deposit(shared, frozenset(map(SliceId, range(4, 8))), WorkerId("2")),
    ]
    half = shared.only(deposits[0].slices)
    assert half is not None
    durable = whole(deposits, {0: [half], 1: [part]})
    assert durable is not None
    assert with_deposits({"count": OperatorState((here, shared), 7)}, durable) == {
        "count": OperatorState((here, half, part), 7)
    }
    assert with_deposits({"count": OperatorState((here, half))}, durable)["count"].runs == (here, half)
    assert whole(deposits, {0: [half]}) is None, "slices 4 to 7 are nowhere"


class TestHistory:
    """A driver's checkpoint, without Spark: its logs are files."""

    def committed(self, store: LocalStore, epochs: int) -> None:
        log = ManifestLog(store)
        parent = None
        for number in range(epochs):
            store.put(f"spark/offsets/{number}", f"v1\n{{}}\n{number}".encode())
            one = replace(manifest(number), parent="" if parent is None else parent.id)
            log.commit(one, parent)
            if number < epochs - 1:
                store.put(f"spark/commits/{number}", b"v1\n{}")
            parent = one

    def never(self, of: Manifest, stored: Set[str]) -> Manifest | None:
        raise AssertionError("nothing is due")

    def test_epochs_are_fed_one_by_one(self, store: LocalStore) -> None:
        self.committed(store, 5)
        DurableLog(store).commit(manifest(1))
        history = History(store, Interval(10), self.never)
        assert history.head is not None
        assert history.head.epoch == 1
        for number in (2, 3, 4):
            assert history.feed_spark()
            assert store.list("spark/offsets") == [str(e) for e in range(number + 1)]
            assert store.list("spark/commits") == [str(e) for e in range(number)]
            assert store.get(f"spark/offsets/{number}") == f"v1\n{{}}\n{number}".encode()
            epoch = Epoch(number)
            assert (history.published(epoch), history.repeated(epoch)) == (number < 4, True)
            again = replace(manifest(number), parent=history.head.id, driver=2)
            history.commit(again, history.head)
            store.put(f"spark/commits/{number}", b"v1\n{}")
            store.put(f"spark/offsets/{number + 1}", b"what Spark would do next")
        assert not history.feed_spark()
        assert not history.repeated(Epoch(5))
        assert DurableLog(store).replay() is None

    @pytest.mark.parametrize("life", [1, 2, 3])
    def test_lives_that_are_short_get_to_the_end_of_what_is_to_be_repeated(self, store: LocalStore, life: int) -> None:
        self.committed(store, 12)
        depositor = Depositor()
        depositor.go_on.set()
        for _ in range(13):  # Each is killed after a few epochs.
            history = History(store, Interval(100), depositor)
            for _ in range(life):
                if not history.feed_spark():
                    break
                parent = history.head
                epoch = 0 if parent is None else parent.epoch + 1
                again = replace(manifest(epoch), parent="" if parent is None else parent.id, driver=2)
                history.commit(again, parent)
                store.put(f"spark/commits/{epoch}", b"v1\n{}")
                history.durability.committed(again, repeated=history.repeated(again.epoch))
            if history.replay is None:
                return
        raise AssertionError("the same epochs are repeated for ever")

    def test_an_epoch_that_was_not_published_is_run_again(self, store: LocalStore) -> None:
        self.committed(store, 3)
        history = History(store, Interval(10), self.never)
        assert history.head is None
        for number in range(3):
            assert history.feed_spark()
            parent = history.head
            history.commit(replace(manifest(number), parent="" if parent is None else parent.id, driver=2), parent)
            if number < 2:
                store.put(f"spark/commits/{number}", b"v1\n{}")
        assert history.feed_spark(), "the driver did not get to publish it"
        assert "2" in store.list("spark/offsets")

    def test_a_second_loss_does_not_forget_the_first(self, store: LocalStore) -> None:
        self.committed(store, 6)
        first = History(store, Interval(10), self.never)
        assert first.feed_spark()
        first.commit(replace(manifest(0), driver=2), None)
        second = History(store, Interval(10), self.never)
        assert second.head is None
        assert second.replay == first.replay
        assert second.replay is not None
        assert (second.replay.committed, sorted(second.replay.entries)) == (5, list(range(6)))

    def test_a_log_that_does_not_reach_back_is_told(self, store: LocalStore) -> None:
        self.committed(store, 5)
        store.delete(["spark/offsets/1", "spark/offsets/2"])
        with pytest.raises(CannotRepeat, match=r"lacks those of 1, 2"):
            History(store, Interval(10), self.never)
        last = ManifestLog(store).head()
        assert last is not None
        assert last.epoch == 4, "nothing was changed"


def test_a_durable_checkpoint_is_not_waited_for_without_an_end(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability_module, "DEPOSIT_S", 0.05)
    depositor = Depositor()
    durability = Durability(DurableLog(store), Interval(2), depositor, None)
    try:
        for epoch in range(3):
            durability.committed(manifest(epoch, run(f"r{epoch}", "0-7", epoch)))
        for waits in (durability.wait, lambda: durability.now(manifest(2), {}), lambda: durability.finish(manifest(2))):
            with pytest.raises(WaitedTooLong, match="a durable checkpoint"):
                waits()
    finally:
        depositor.go_on.set()
