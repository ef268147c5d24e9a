"""The rows of each source, from what tasks have told."""

import pytest

from springtide.engine.taken import Taken, by_source


@pytest.mark.parametrize(
    ("told", "rows"),
    [
        ([], (0, 0)),
        (["0 5 0", "1 0 7"], (5, 7)),
        (["0 5 0", "1 0 7", "0 5 0"], (5, 7)),
        (["0 2 0", "0 5 0"], (5, 0)),
        (["3 5 1", "3 2 0", "0 1 1"], (6, 2)),
    ],
    ids=["nobody read", "two partitions", "read twice", "an attempt that failed", "several rows of several sources"],
)
def test_each_partition_counts_once_with_the_most_that_was_told(told: list[str], rows: tuple[int, int]) -> None:
    assert by_source(told, 2) == rows
    assert by_source(reversed(told), 2) == rows


def test_rows_have_the_names_of_their_sources() -> None:
    assert Taken(("left", "right"), lambda: ["0 3 0", "1 0 4"]).rows() == {"left": 3, "right": 4}
