"""Sets of slices: as text they are short, and nothing is lost on the way."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.blocks.slice_set import NO_SLICES, SliceSet
from springtide.errors import BadValue

SETS = st.builds(SliceSet.of, st.frozensets(st.integers(0, 200)))


@given(slices=SETS)
def test_slices_survive_as_text_and_on_the_way_to_a_task(slices: SliceSet) -> None:
    for found in (SliceSet.parse(str(slices)), pickle.loads(pickle.dumps(slices)), copy.deepcopy(slices)):
        assert found == slices
        assert isinstance(found, SliceSet)


def test_slices_are_short_and_readable() -> None:
    assert str(SliceSet.of([5, 0, 2, 1])) == "0-2,5"
    assert str(SliceSet.of(range(128))) == "0-127"
    assert str(NO_SLICES) == ""
    assert SliceSet.parse("") == NO_SLICES
    assert len(pickle.dumps(SliceSet.of(range(128)))) < 100, "it goes to every task of an epoch"


@given(st.lists(SETS, max_size=4))
def test_a_union_has_the_slices_of_all(sets: list[SliceSet]) -> None:
    found = SliceSet.union_of(sets)
    assert isinstance(found, SliceSet)
    assert found == {number for slices in sets for number in slices}


@pytest.mark.parametrize("text", ["a", "1-b", "1;2", "-3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="expected slices as ranges"):
        SliceSet.parse(text)
