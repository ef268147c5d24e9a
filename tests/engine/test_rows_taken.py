"""The rows of each source, from what tasks have told."""

import pytest

from springtide.engine.shedding.rows_taken import RowsTaken, Taken, most_told


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
    assert most_told(told, 2) == rows
    assert most_told(reversed(told), 2) == rows


def test_rows_have_the_names_of_their_sources() -> None:
    told = Taken(("left", "right"), 0, lambda: ["0 3 0", "1 0 4"])
    assert told.rows() == RowsTaken({"left": 3, "right": 4}, 0)


def test_malformed_rows_are_those_with_any_mark() -> None:
    told = Taken(("left", "right"), 2, lambda: ["0 3 0 1 0", "1 0 4 0 2", "0 3 0 1 0"])
    assert told.rows() == RowsTaken({"left": 3, "right": 4}, 3)
