"""Rows in the order of two numbers, against Python's own sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.state.order import order_within

numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1]))


@given(st.lists(st.tuples(numbers, numbers), max_size=40))
def test_rows_are_ordered_by_group_then_by_number_and_equal_ones_stay(rows: list[tuple[int, int]]) -> None:
    groups, values = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    assert order_within(groups, values).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@pytest.mark.parametrize("greatest", [2**62 - 2, 2**62 - 1])
def test_two_numbers_that_just_fit_one_and_that_just_do_not(greatest: int) -> None:
    groups, values = np.array([1, 0, 1, 0]), np.array([greatest, 0, 0, greatest])
    assert order_within(groups, values).tolist() == [1, 3, 2, 0]
