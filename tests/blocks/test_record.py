"""The app's record: what must not change is refused, with nothing written."""

import json
import pickle
from typing import Any

import pytest
from blocks_kit import everything, s3_store

from springtide.blocks.errors import NewerFormat
from springtide.blocks.record import FORMAT, PATH, AppChanged, AppRecord
from springtide.blocks.store import Store

LAYOUT: dict[str, Any] = {
    "key": [["word", "string"]], "state": [["n.0", "int64"]], "expires": False, "drops": False,
}  # fmt: skip
OPERATORS: dict[str, dict[str, Any]] = {"counts": {"kind": "aggregate", "layout": LAYOUT, "key": ["word"]}}
RECORD = AppRecord("words", 128, OPERATORS)


@pytest.fixture
def store() -> Store:
    """A checkpoint that RECORD has written."""
    store = s3_store()
    RECORD.check(store)
    assert everything(store) == {}, "to check writes nothing"
    RECORD.write(store)
    return store


def changed(**fields: Any) -> AppRecord:
    return AppRecord("words", 128, {"counts": {**OPERATORS["counts"], **fields}})


def test_the_same_app_may_start_again(store: Store) -> None:
    before = everything(store)
    RECORD.check(store)
    RECORD.write(store)
    assert everything(store) == before


def test_tuples_and_lists_are_the_same(store: Store) -> None:
    """What was recorded came back from JSON."""
    changed(layout={**LAYOUT, "key": (("word", "string"),)}, key=("word",)).check(store)


@pytest.mark.parametrize(
    ("record", "step", "what", "was", "now"),
    [
        (AppRecord("other", 128, OPERATORS), "other", "the app's name", "words", "other"),
        (AppRecord("words", 64, OPERATORS), "words", "the number of slices", 128, 64),
        (changed(key=["word", "user"]), "counts", "its key", ["word"], ["word", "user"]),
        (changed(kind="reduce"), "counts", "its kind", "aggregate", "reduce"),
        (
            changed(layout={**LAYOUT, "state": [["n.0", "double"]]}),
            "counts",
            "its layout",
            LAYOUT,
            {**LAYOUT, "state": [["n.0", "double"]]},
        ),
        (AppRecord("words", 128, {}), "counts", "the step", "a keyed operator", "not in the app"),
        (AppRecord("words", 128, {"counts": {"kind": "aggregate"}}), "counts", "its key", ["word"], None),
        (
            AppRecord("words", 128, {"renamed": OPERATORS["counts"]}),
            "counts",
            "the step",
            "a keyed operator",
            "not in the app",
        ),
    ],
)
def test_a_change_that_state_cannot_follow_is_refused_with_nothing_written(
    store: Store, record: AppRecord, step: str, what: str, was: object, now: object
) -> None:
    before = everything(store)
    with pytest.raises(AppChanged, match=f"step '{step}': {what} was .*Nothing was written") as caught:
        record.check(store)
    error = caught.value
    assert (error.step, error.what, error.recorded, error.now) == (step, what, was, now)
    assert everything(store) == before
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_a_new_step_may_join_and_is_recorded(store: Store) -> None:
    more = AppRecord("words", 128, {**OPERATORS, "sums": OPERATORS["counts"]})
    more.check(store)
    more.write(store)
    with pytest.raises(AppChanged, match="'sums'"):
        RECORD.check(store)
    more.check(store)


def test_a_record_of_a_later_release_is_refused(store: Store) -> None:
    fields = {**json.loads(store.get(PATH)), "format": FORMAT + 1, "app": {"who": "knows"}}
    store.put(PATH, json.dumps(fields).encode())
    before = everything(store)
    with pytest.raises(NewerFormat, match=rf"the checkpoint has format {FORMAT + 1}.*reads up to {FORMAT}"):
        RECORD.check(store)
    assert everything(store) == before
