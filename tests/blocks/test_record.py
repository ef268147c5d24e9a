"""The app's record: what must not change is refused, with nothing written."""

import json
import pickle
from typing import Any

import pytest
from blocks_kit import everything, s3_store

from springtide.blocks.app_changes import in_words
from springtide.blocks.errors import NewerFormat
from springtide.blocks.record import FORMAT, PATH, AppChanged, AppRecord
from springtide.blocks.store import Store

LAYOUT: dict[str, Any] = {
    "key": [["word", "string"]],
    "state": [["n.0", "int64"]],
    "expires": False,
    "drops": False,
}
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
        (changed(key=["word", "user"]), "counts", "key", ["word"], ["word", "user"]),
        (changed(kind="reduce"), "counts", "kind", "aggregate", "reduce"),
        (
            changed(layout={**LAYOUT, "state": [["n.0", "double"]]}),
            "counts",
            "layout",
            LAYOUT,
            {**LAYOUT, "state": [["n.0", "double"]]},
        ),
        (AppRecord("words", 128, {}), "counts", "step", "counts", []),
        (AppRecord("words", 128, {"counts": {"kind": "aggregate"}}), "counts", "key", ["word"], None),
        (
            AppRecord("words", 128, {"renamed": OPERATORS["counts"]}),
            "counts",
            "step",
            "counts",
            ["renamed"],
        ),
    ],
)
def test_a_change_that_state_cannot_follow_is_refused_with_nothing_written(
    store: Store, record: AppRecord, step: str, what: str, was: object, now: object
) -> None:
    before = everything(store)
    with pytest.raises(AppChanged, match=r"does not fit the state in the checkpoint: .*Nothing was written") as caught:
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


MINUTE = {"size_us": 60_000_000, "slide_us": 60_000_000}


@pytest.mark.parametrize(
    ("what", "was", "now", "said"),
    [
        (
            "operation",
            {"aggregates": {"n": "Count(column=None)"}, "window": None},
            {"aggregates": {"n": "Count(column=None)", "top": "Extreme(column='key', greatest=True)"}, "window": None},
            "the result top = agg.max('key') was added",
        ),
        (
            "operation",
            {"aggregates": {"n": "EstimatedSum(column='fare')"}, "window": MINUTE},
            {"aggregates": {"n": "Sum(column='fare')"}, "window": {**MINUTE, "slide_us": 30_000_000}},
            "the result n was agg.sum('fare', estimate=True) and is agg.sum('fare') now; "
            "its window was 60 seconds and is 60 seconds, every 30 now",
        ),
        (
            "key",
            [["word", "string"]],
            [["word", "string"], ["user", "int64"]],
            "its key was word string and is word string, user int64 now",
        ),
        ("kind", "aggregate", "dedupe", "it was aggregate(...) and is dedupe(...) now"),
    ],
)
def test_a_change_is_told_in_the_words_of_the_app(what: str, was: object, now: object, said: str) -> None:
    assert in_words(what, was, now) == said
