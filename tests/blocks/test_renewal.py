"""A claim is renewed as long as its driver lives, whatever the store does, and a driver that lost it is told."""

import os
from collections.abc import Callable

import pytest
from blocks_kit import BEFORE, S3Like, s3_store
from claim_kit import STRANGER, path_of, plant
from waiting import wait_until

from springtide.blocks import claim as claim_module
from springtide.blocks.claim import Claim, Holder, claim
from springtide.blocks.errors import TakenOver
from springtide.blocks.store import LocalStore

DEADLINE_S = 20.0


def test_a_claim_is_renewed_while_its_driver_lives(
    store: LocalStore, take: Callable[..., Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "RENEW_S", 0.005)
    take()
    beats: list[int] = []

    def three() -> bool:
        beats.append(Holder.decode(store.get(path_of(1))).beat)
        return len(set(beats)) == 3

    wait_until("three beats", three, DEADLINE_S)
    assert beats == sorted(beats)
    assert Holder.decode(store.get(path_of(1))).pid == os.getpid()


def test_a_store_that_is_away_for_a_while_does_not_end_the_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_module, "RENEW_S", 0.005)
    bucket = S3Like()
    store = s3_store(bucket)
    held = claim(store)
    failures: list[str] = []

    def away(call: str, path: str) -> str | None:
        if call == "put":
            failures.append(path)
        return BEFORE if call == "put" else None

    bucket.fail = away
    wait_until("failures", lambda: len(failures) >= 3, DEADLINE_S)
    bucket.fail = lambda call, path: None
    before = Holder.decode(store.get(path_of(1))).beat
    wait_until("another beat", lambda: Holder.decode(store.get(path_of(1))).beat > before, DEADLINE_S)
    held.release()
    assert Holder.decode(store.get(path_of(1))).released


def test_a_driver_that_was_taken_over_is_told_by_whom(store: LocalStore, take: Callable[..., Claim]) -> None:
    first = take()
    first.check()
    plant(store, STRANGER, 2)
    with pytest.raises(TakenOver, match="taken over by process 4711 on another-host"):
        first.check()


def test_the_renewal_finds_out_too_and_ends(
    store: LocalStore, take: Callable[..., Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "RENEW_S", 0.005)
    first = take()
    told: list[TakenOver] = []
    first.on_lost = told.append
    plant(store, STRANGER, 2)
    wait_until("to be told", lambda: bool(told), DEADLINE_S)
    wait_until("the end of the renewal", lambda: not first._renewal.is_alive(), DEADLINE_S)
    assert Holder.decode(store.get(path_of(2))) == STRANGER


def test_no_error_of_a_store_ends_the_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an object store's own library are of any type."""
    monkeypatch.setattr(claim_module, "RENEW_S", 0.005)
    bucket = S3Like()
    bucket.error = lambda: ValueError("no error of the system")  # type: ignore[assignment,return-value]
    held = claim(s3_store(bucket))
    failures: list[str] = []

    def away(call: str, path: str) -> str | None:
        failures.append(call)
        return BEFORE

    bucket.fail = away
    wait_until("failures", lambda: len(failures) >= 3, DEADLINE_S)
    bucket.fail = lambda call, path: None
    wait_until("another beat", lambda: Holder.decode(held.store.get(path_of(1))).beat > 0, DEADLINE_S)
    held.release()
