"""A checkpoint's store in a real S3 server, over HTTP: the contract, and the habits of servers that are like S3."""

from pathlib import Path

import pytest
from fsck_kit import Checkpoint, examine
from s3_kit import S3, everything, s3_store
from store_contract import Contract
from typer.testing import CliRunner

from springtide.blocks import atomicity
from springtide.blocks.atomicity import NotAtomic, check_atomic
from springtide.blocks.claim import DIRECTORY, claim
from springtide.blocks.errors import AlreadyThere
from springtide.blocks.generation import current, open_generation
from springtide.blocks.store import ObjectStore
from springtide.cli.main import cli

MULTIPART_BYTES = 100 << 20
"""From here on s3fs sends an object by parts."""


@pytest.fixture
def store(s3: S3) -> ObjectStore:
    return s3_store()


class TestContract(Contract):
    """As every other store."""


def test_put_if_absent_is_atomic_and_probing_it_leaves_nothing(store: ObjectStore) -> None:
    check_atomic(store, DIRECTORY)
    assert everything(store) == {}


@pytest.mark.usefixtures("s3")
def test_a_server_that_pays_no_heed_to_conditions_is_refused() -> None:
    store = s3_store("deaf")
    with pytest.raises(NotAtomic, match=r"cannot hold a checkpoint: 4 of 4 that wrote one name at once"):
        claim(store)
    assert everything(store) == {}


@pytest.mark.usefixtures("s3")
def test_a_server_that_does_not_say_which_condition_failed_will_do() -> None:
    """Then s3fs has no word for it."""
    store = s3_store("terse")
    check_atomic(store, DIRECTORY)
    store.put_if_absent("a", b"1")
    with pytest.raises(AlreadyThere):
        store.put_if_absent("a", b"2")
    assert store.get("a") == b"1"


@pytest.mark.usefixtures("s3")
def test_who_writes_again_because_an_answer_was_lost_knows_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver of the store tries again by itself, and finds the name taken: by us."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    monkeypatch.setattr(atomicity, "ROUNDS", 1)  # Each loses an answer, too, and waits before the next attempt.
    store = s3_store("lossy")
    with pytest.raises(AlreadyThere):
        store.put_if_absent("a", b"1")
    assert store.get("a") == b"1"
    held = claim(store)
    try:
        assert current(store).url == store.url
        own = open_generation(store, held)
        assert current(store).url == own.url
    finally:
        held.release()


def test_a_listing_that_was_begun_earlier_is_shown_to_nobody(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread's, from before a later driver claimed; what it found comes just when this one looks."""
    store.put("drivers/1", b"")
    old, forget = store.filesystem.ls(f"{store.path}/drivers", detail=True), store.filesystem.invalidate_cache

    def forget_and_find_the_old(path: str | None = None) -> None:
        forget(path)
        store.filesystem.dircache[f"{store.path}/drivers"] = old

    monkeypatch.setattr(store.filesystem, "invalidate_cache", forget_and_find_the_old)
    store.filesystem.pipe_file(f"{store.path}/drivers/2", b"")
    assert store.list("drivers") == ["1", "2"]


def test_an_object_that_stands_for_a_directory_is_no_name(store: ObjectStore) -> None:
    """As Hadoop makes them when it makes directories."""
    store.put("spark/offsets/0", b"x")
    for directory in ("spark/offsets", "spark/commits"):
        bucket, _, key = f"{store.path}/{directory}/".partition("/")
        store.filesystem.call_s3("put_object", Bucket=bucket, Key=key, Body=b"")
    assert store.list("spark") == ["commits", "offsets"]
    assert store.list("spark/offsets") == ["0"]
    assert store.list("spark/commits") == []
    store.remove("spark")
    assert store.list("") == store.list("spark") == []


@pytest.mark.slow
def test_a_block_that_is_sent_by_parts_and_a_listing_of_several_pages(store: ObjectStore) -> None:
    data = bytes(range(256)) * (MULTIPART_BYTES // 256 + 1)
    store.put("blocks/large", data)
    assert store.get("blocks/large") == data
    store.put_if_absent("blocks/other", data)
    with pytest.raises(AlreadyThere):
        store.put_if_absent("blocks/other", data[:-1])
    names = [f"{number:04d}" for number in range(1100)]
    store.filesystem.pipe({f"{store.path}/many/{name}": b"" for name in names})
    assert store.list("many") == names
    store.remove("many")
    assert store.list("many") == []


def test_fsck_reads_a_checkpoint_in_s3(store: ObjectStore, tmp_path: Path) -> None:
    made = Checkpoint(tmp_path)
    root = made.store.root
    for path in filter(Path.is_file, root.rglob("*")):
        store.put(str(path.relative_to(root)), path.read_bytes())
    store.delete(["ledger/000000000.jsonl"])  # It has none of the fields that the command reads.
    before = everything(store)
    assert examine(store).sound
    told = CliRunner().invoke(cli, ["fsck", store.url])
    assert told.exit_code == 0, told.output
    assert "Sound: tide can go on after epoch 2" in told.output
    lost = made.head.operators["counts"].runs[-1].path
    store.delete([lost])
    told = CliRunner().invoke(cli, ["fsck", store.url])
    assert told.exit_code == 1, told.output
    assert "missing" in told.output
    assert everything(store) == {name: data for name, data in before.items() if name != lost}, "it changes nothing"
