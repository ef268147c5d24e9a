"""A write lands and its answer is lost: who tries again finds its own, and takes nobody else's for it."""

import os
from dataclasses import replace

import pytest
from blocks_kit import AFTER, S3Like, s3_store

from springtide.blocks.claim import DIRECTORY, claim, this_process
from springtide.blocks.errors import CheckpointInUse
from springtide.blocks.generation import OPENED, current, open_generation
from springtide.blocks.patience import PatientStore
from springtide.blocks.store import Store

FIRST = f"{DIRECTORY}/000000001.json"


def losing(name: str) -> tuple[Store, list[str]]:
    """A bucket that takes a name and does not say so, once."""
    bucket, lost = S3Like(), [AFTER]
    bucket.fail = lambda call, path: lost.pop() if call == "put" and path.endswith(name) and lost else None
    return s3_store(bucket), lost


def test_a_claim() -> None:
    store, lost = losing(FIRST)
    held = claim(store)
    try:
        assert (held.generation, lost) == (1, [])
        held.check()
    finally:
        held.release()


def test_a_generation() -> None:
    store, lost = losing(OPENED)
    held = claim(store)
    try:
        own = open_generation(PatientStore(store), held)
        assert current(store).url == own.url
        assert not lost
    finally:
        held.release()


def test_another_claim_of_the_same_process_is_no_ones_own() -> None:
    bucket = S3Like()
    store = s3_store(bucket)

    def faster(call: str, path: str) -> None:
        if call == "put" and not bucket.store:
            bucket.fail = lambda call, path: None
            store.put(FIRST, replace(this_process(), token="of another thread").encode())

    bucket.fail = faster
    with pytest.raises(CheckpointInUse, match=f"process {os.getpid()} on"):
        claim(store)
