"""Which utilities are kept."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.engine.shedding.utility import Cut, cut


def test_the_most_worthy_are_kept_first_and_of_the_last_kind_a_part() -> None:
    counts = {5: 10, 3: 10, 1: 80}
    assert cut(counts, 0.1) == Cut(5, 1.0)
    assert cut(counts, 0.15) == Cut(3, 0.5)
    assert cut(counts, 0.6) == Cut(1, 0.5)


def test_without_rows_there_is_nothing_to_cut() -> None:
    assert cut({}, 0.5) == Cut(0, 1.0)


@given(st.dictionaries(st.integers(-50, 50), st.integers(1, 1000), min_size=1), st.floats(0, 1))
def test_the_share_is_met(counts: dict[int, int], share: float) -> None:
    found = cut(counts, share)
    kept = Counter({value: n for value, n in counts.items() if value > found.worth})
    assert sum(kept.values()) + found.share * counts[found.worth] == pytest.approx(share * sum(counts.values()))
    assert 0 <= found.share <= 1
