"""Drivers on one checkpoint in a real S3 server: one at a time, and whoever wakes up late harms nobody."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from fence_kit import Driver, Turn, TurnStore, World, tokens_of
from fence_machine import Drivers
from hypothesis import HealthCheck, settings
from s3_kit import S3, everything, s3_store

from springtide.blocks import claim as claim_module
from springtide.blocks import collect
from springtide.blocks.claim import LEASE_S, Claim, Holder, claim
from springtide.blocks.errors import CheckpointInUse, TakenOver
from springtide.blocks.generation import current, open_generation
from springtide.blocks.log import ManifestLog
from springtide.blocks.store import ObjectStore, Store, open_store
from springtide.testing import ManualClock

STRANGER = Holder("another-host", "another-boot", 4711, "99", beat=3)


@pytest.fixture
def store(s3: S3) -> ObjectStore:
    return s3_store()


def test_a_claim_is_taken_refused_given_back_and_taken_again(store: ObjectStore) -> None:
    first = claim(store)
    before = everything(store)
    with pytest.raises(CheckpointInUse, match=f"{store.url}.* is in use by process"):
        claim(store)
    assert everything(store) == before, "refused before anything is written"
    first.release()
    second = claim(store)
    assert (first.generation, second.generation) == (1, 2)
    assert store.list("drivers") == ["000000002.json"]
    second.release()


def test_of_many_that_claim_at_once_one_gets_it(store: ObjectStore) -> None:
    ready, won, refused = threading.Barrier(4), list[Claim](), list[CheckpointInUse]()

    def come() -> None:
        ready.wait(60)
        try:
            won.append(claim(store))
        except CheckpointInUse as error:
            refused.append(error)

    _all_at_once([come] * 4)
    assert (len(won), len(refused)) == (1, 3)
    won[0].check()
    won[0].release()


def test_a_silent_holder_is_replaced_and_finds_out(store: ObjectStore) -> None:
    first = claim(store)
    own = open_generation(store, first)
    own.put("spark/offsets/0", b"v1")
    holder = Holder.decode(store.get("drivers/000000001.json"))
    store.put("drivers/000000001.json", replace(holder, host="elsewhere").encode())
    clock = ManualClock()
    second = claim(store, now=clock, wait=clock.advance)
    assert clock() >= LEASE_S
    with pytest.raises(TakenOver, match="taken over by process"):
        first.check()
    later = open_generation(store, second)
    own.put("spark/offsets/0", b"late")
    assert later.get("spark/offsets/0") == b"v1", "what it does from now on, nobody reads"
    assert current(store).url == later.url
    for one in (first, second):
        one.release()


def test_of_two_that_open_a_generation_the_later_one_counts(store: ObjectStore) -> None:
    first = claim(store)
    open_generation(store, first).put("manifests/000000000.json", b"{}")
    store.put("drivers/000000002.json", STRANGER.encode())
    with pytest.raises(TakenOver, match="another-host"):
        open_generation(store, first)
    second = Claim(store, 2, STRANGER)
    own = open_generation(store, second)
    assert current(store).url == own.url
    assert store.list("generations") == ["000000002"]
    for one in (first, second):
        one.release()


@pytest.fixture
def _nobody_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_module, "RENEW_S", 3600.0)
    monkeypatch.setattr(claim_module, "alive", lambda holder: None)
    monkeypatch.setattr(collect, "SWEEP_EVERY", 3)


@pytest.mark.usefixtures("_nobody_beats")
@pytest.mark.parametrize("every", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_driver_that_stops_is_taken_over_and_goes_on(store: ObjectStore, every: int) -> None:
    world, turn = World(store), Turn()
    first = Driver(world, every, 2, TurnStore(store, turn))

    def live() -> None:
        try:
            first.live()
        finally:
            turn.end()

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    turn.await_it()
    while "1" not in store.list("generations/000000001/spark/offsets"):
        turn.step()
    turn.step()  # It has read what its second epoch is to do, and has not done it.
    second = Driver(world, every, 2, open_store(store.url), epochs=1)
    second.live()
    before = _of_the_second(store)
    while not turn.ended:
        turn.step()
    thread.join(60)
    assert isinstance(first.failure, TakenOver)
    assert _of_the_second(store) == before
    last = Driver(world, every, 2, store, epochs=1)
    last.live()
    assert last.failure is None
    _check(world, last)


def _of_the_second(store: ObjectStore) -> dict[str, bytes]:
    found = {name: data for name, data in everything(store).items() if name.startswith("generations/000000002/")}
    assert found
    return found


def _check(world: World, last: Driver) -> None:
    """Every epoch counts once, and readers have seen no other."""
    assert last.history is not None
    last.history.finish()
    head = ManifestLog(current(world.store)).head()
    assert head is not None
    truth = tokens_of(world, last.history.durable or head)
    assert len(truth) == len(set(truth)) == head.epoch + 1
    assert all(truth[epoch] == token for epoch, token in world.published)
    assert {epoch for epoch, _ in world.published} == set(range(head.epoch + 1))


class S3Drivers(Drivers):
    """Any interleaving, each call over HTTP."""

    def store(self) -> Store:
        return s3_store()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("s3", "_nobody_beats")
class TestDrivers(S3Drivers.TestCase):  # type: ignore[misc,name-defined]
    settings = settings(max_examples=8, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))


def _all_at_once(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
