"""Manifests and their log: what is cut short, comes late or comes from another release."""

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blocks_kit import (
    AFTER,
    BEFORE,
    Crash,
    S3Like,
    a_ref,
    crash_in_the_file_system,
    everything,
    next_manifest,
    s3_store,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.blocks import manifest as manifest_module
from springtide.blocks.errors import LineageBroken, ManifestConflict, NewerFormat, StoreFailed
from springtide.blocks.log import DIRECTORY, TORN, ManifestLog
from springtide.blocks.manifest import FORMAT, Manifest, OperatorState, TornManifest
from springtide.blocks.store import LocalStore, Store
from springtide.ids import Epoch, PlanVersion
from springtide.metrics.account import Account, StepAccount
from springtide.metrics.report import QueryReport


def path_of(epoch: int) -> str:
    return f"{DIRECTORY}/{epoch:09d}.json"


@pytest.fixture
def log() -> ManifestLog:
    return ManifestLog(s3_store())


def committed(log: ManifestLog, epochs: int) -> list[Manifest]:
    history: list[Manifest] = []
    for _ in range(epochs):
        parent = history[-1] if history else None
        history.append(next_manifest(parent))
        log.commit(history[-1], parent)
    return history


def test_a_new_checkpoint_has_no_head(log: ManifestLog) -> None:
    assert log.head() is None
    assert log.epochs() == []


def test_a_manifest_cut_at_any_byte_does_not_count() -> None:
    """Every length, the empty file and the lost last byte included."""
    data = next_manifest(None).encode()
    for size in range(len(data)):
        with pytest.raises(TornManifest):
            Manifest.decode(data[:size])


@settings(max_examples=100)
@given(data=st.data())
def test_a_manifest_with_a_flipped_bit_does_not_count(data: st.DataObject) -> None:
    whole = bytearray(next_manifest(None).encode())
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(TornManifest):
        Manifest.decode(bytes(whole))


@pytest.mark.parametrize("rest", [b"", b"{", b"\n\n", b"\xff\xfe\n\n", b"null\n\n", b"x" * 100])
def test_what_is_no_manifest_at_all_is_torn(log: ManifestLog, rest: bytes) -> None:
    history = committed(log, 2)
    log.store.put(path_of(2), rest)
    assert log.head() == history[1]
    assert log.store.get(f"{TORN}/{2:09d}.json") == rest, "people can still look at it"
    log.commit(next_manifest(history[1]), history[1])
    assert log.epochs() == [0, 1, 2]


def test_a_torn_first_manifest_leaves_a_new_checkpoint(log: ManifestLog) -> None:
    log.store.put(path_of(0), b"{")
    assert log.head() is None
    log.commit(next_manifest(None), None)


def test_a_manifest_of_a_later_release_is_refused_and_left_alone(
    log: ManifestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not torn: to go back to the epoch before it would lose what it stands for."""
    (first,) = committed(log, 1)
    monkeypatch.setattr(manifest_module, "FORMAT", FORMAT + 1)
    log.store.put(path_of(1), next_manifest(first).encode())
    monkeypatch.undo()
    before = everything(log.store)
    with pytest.raises(NewerFormat, match=rf"epoch 1 has format {FORMAT + 1}, and this release reads up to {FORMAT}"):
        log.head()
    with pytest.raises(NewerFormat):
        log.check_readable()
    assert everything(log.store) == before


def test_looking_whether_a_checkpoint_can_be_read_writes_nothing(log: ManifestLog) -> None:
    log.check_readable()
    committed(log, 2)
    log.check_readable()
    log.store.put(path_of(2), b"torn")
    before = everything(log.store)
    log.check_readable()
    assert everything(log.store) == before


def test_a_later_release_may_have_fields_nobody_here_knows(log: ManifestLog) -> None:
    body = json.dumps({"format": FORMAT + 1, "epoch": 0, "surprise": [1]})
    log.store.put(path_of(0), f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n".encode())
    with pytest.raises(NewerFormat):
        log.head()


def test_the_account_is_part_of_the_manifest() -> None:
    query = QueryReport("q", 12, 8, 3, 1, 0.75, 2, 0.5)
    account = Account({"rows": 12, "other": 0}, 1, 9, (StepAccount("counts", 8, 9, 2, 4, 3),), (query,))
    manifest = replace(next_manifest(None), account=account)
    assert Manifest.decode(manifest.encode()) == manifest
    assert manifest.id != next_manifest(None).id
    assert account.dead_letters == 5


def test_a_manifest_of_a_release_without_accounts_and_with_one_input_a_step_can_be_read() -> None:
    operators = {"seen": OperatorState(newest_us=(7,), watermark_us=5), "unseen": OperatorState()}
    manifest = replace(next_manifest(None), operators=operators)
    fields = json.loads(manifest.encode().decode().split("\n")[0])
    del fields["account"]
    fields["operators"]["seen"]["newest_us"], fields["operators"]["unseen"]["newest_us"] = 7, None
    body = json.dumps({**fields, "format": 4}, sort_keys=True)
    old = f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n".encode()
    assert Manifest.decode(old) == manifest


@pytest.mark.parametrize("name", ["5", "README", "000000009.json.bak", "12.json", "²²²²²²²²².json", "00000000x.json"])
def test_a_strange_file_among_the_manifests_is_left_alone(log: ManifestLog, name: str) -> None:
    history = committed(log, 2)
    log.store.put(f"{DIRECTORY}/{name}", b"what is this")
    assert log.head() == history[1]
    assert log.epochs() == [0, 1]
    assert log.store.get(f"{DIRECTORY}/{name}") == b"what is this"


def test_epochs_are_in_order_beyond_nine_digits(log: ManifestLog) -> None:
    for epoch in (10**9, 10**9 - 1, 5):
        log.store.put(path_of(epoch), b"")
    assert log.epochs() == [5, 10**9 - 1, 10**9]


def test_a_put_that_timed_out_but_landed_is_a_commit() -> None:
    bucket = S3Like()
    log, manifest = ManifestLog(s3_store(bucket)), next_manifest(None)
    bucket.fail = lambda call, path: AFTER if call == "put" else None
    log.commit(manifest, None)
    assert log.head() == manifest


def test_a_put_that_timed_out_while_another_driver_committed_is_a_conflict() -> None:
    bucket = S3Like()
    log, theirs = ManifestLog(s3_store(bucket)), next_manifest(None, driver=2)
    log.store.put(path_of(0), theirs.encode())
    bucket.fail = lambda call, path: BEFORE if call == "put" else None
    with pytest.raises(ManifestConflict, match="two drivers run on one checkpoint"):
        log.commit(next_manifest(None), None)


def test_a_store_that_is_away_altogether_gives_one_clear_error() -> None:
    """Neither the put nor the look whether it landed went through."""
    bucket = S3Like()
    bucket.fail = lambda call, path: BEFORE
    with pytest.raises(StoreFailed) as caught:
        ManifestLog(s3_store(bucket)).commit(next_manifest(None), None)
    assert caught.value.path == path_of(0)
    assert str(caught.value).count("start the app again") == 1, "the reason is said once"
    assert "the bucket did not answer" in str(caught.value)


@pytest.mark.parametrize("epoch", [0, 2, 3, 7])
def test_only_the_next_epoch_can_be_committed(log: ManifestLog, epoch: int) -> None:
    (first,) = committed(log, 1)
    with pytest.raises(LineageBroken, match=rf"asks for epoch {epoch}, but the last committed epoch is 0") as caught:
        log.commit(Manifest("app", Epoch(epoch), first.id, PlanVersion(1), 1), first)
    assert (caught.value.wanted, caught.value.head) == (epoch, 0)


def test_the_first_epoch_is_zero(log: ManifestLog) -> None:
    with pytest.raises(LineageBroken, match="epoch 1, but the last committed epoch is -1"):
        log.commit(Manifest("app", Epoch(1), "", PlanVersion(1), 1), None)


def test_a_crash_at_any_system_call_of_a_commit_leaves_a_head(tmp_path: Path) -> None:
    """The same on a real directory: before, or after, and never something in between."""
    for calls in range(20):
        log = ManifestLog(LocalStore(tmp_path / str(calls)))
        (first,) = committed(log, 1)
        second = next_manifest(first)
        with crash_in_the_file_system(calls):
            try:
                log.commit(second, first)
            except Crash:
                crashed = True
            else:
                crashed = False
        head = ManifestLog(LocalStore(tmp_path / str(calls))).head()
        assert head in (first, second)
        if not crashed:
            assert head == second
            return
        log.commit(second, first)
    pytest.fail("the commit never came to its end")


texts = st.sampled_from(["", "app", "ä\n🌊", '{"offset": 3}', "\x00"])
operators = st.dictionaries(
    st.sampled_from(["counts", "joins"]),
    st.builds(
        OperatorState,
        st.lists(st.builds(a_ref, st.integers(0, 5)), max_size=3).map(tuple),
        st.integers(0, 10**12),
        st.lists(st.integers(-(10**15), 10**15), max_size=2).map(tuple),
        st.one_of(st.none(), st.integers(-(10**15), 10**15)),
    ),
)


@settings(max_examples=60)
@given(
    app=texts,
    epoch=st.integers(0, 10**10),
    parent=st.sampled_from(["", "ab" * 32]),
    operators=operators,
    outputs=st.integers(0, 2),
    offsets=st.lists(texts, max_size=3),
)
def test_a_manifest_survives_as_bytes(
    app: str, epoch: int, parent: str, operators: dict[str, OperatorState], outputs: int, offsets: list[str]
) -> None:
    """Newlines in offsets and any names included; and its id depends on all of it."""
    made = {"counts": tuple(a_ref(epoch, "output") for _ in range(outputs))}
    manifest = Manifest(app, Epoch(epoch), parent, PlanVersion(2), 3, operators, made, tuple(offsets))
    copy = Manifest.decode(manifest.encode())
    assert copy == manifest
    assert copy.id == manifest.id
    assert Manifest(app, Epoch(epoch + 1), parent, PlanVersion(2), 3, operators, made, tuple(offsets)).id != copy.id


def test_a_manifest_names_all_its_blocks() -> None:
    first = next_manifest(None, blocks=2)
    second = next_manifest(first, keep=1)
    runs = [r.name for r in second.operators["counts"].runs]
    assert second.blocks() == {*runs, second.outputs["counts"][0].name}
    assert runs[0] in first.blocks()


def test_an_instance_replaces_its_runs_for_its_own_slices_only() -> None:
    """The other slices of a shared run go on counting; a run that counts for nothing is no longer named."""
    old, new = a_ref(0), a_ref(1)
    state = OperatorState((old,)).replaced({old.name: frozenset({0, 1})}, new)  # type: ignore[dict-item]
    assert [(r.name, str(r.slices), r.partial) for r in state.runs] == [
        (old.name, "2-3", True),
        (new.name, "0-3", False),
    ]
    state = state.replaced({old.name: frozenset({2, 3})}, None)  # type: ignore[dict-item]
    assert [r.name for r in state.runs] == [new.name]
    assert state.replaced({}, None) == state


@pytest.mark.parametrize(
    "error",
    [
        ManifestConflict(3, "a" * 64, "b" * 64),
        NewerFormat("the manifest", 2, 1),
        LineageBroken(3, 1),
        TornManifest("cut"),
    ],
)
def test_the_errors_can_be_sent_and_keep_their_facts(error: Exception) -> None:
    copy: Any = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_store_is_all_a_log_needs(tmp_path: Path) -> None:
    stores: list[Store] = [LocalStore(tmp_path), s3_store()]
    for store in stores:
        history = committed(ManifestLog(store), 3)
        assert ManifestLog(store).head() == history[-1]
        ManifestLog(store).forget([Epoch(0)])
        assert ManifestLog(store).epochs() == [1, 2]
