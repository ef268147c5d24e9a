"""What a row costs, from bursts whose epochs take a known time."""

from collections.abc import Mapping

import pytest

from springtide.bench.experiments.shed.costs import FEW, MANY, NONE_KEPT, SHED, cost_of_shed, costs_of_kept, slope
from springtide.bench.experiments.shed.staged import Burst


class Epochs:
    """An app whose epochs take half a second and some for each row."""

    def __init__(self, row_s: float, shed_row_s: float = 0.0) -> None:
        self.row_s, self.shed_row_s = row_s, shed_row_s
        self.accuracy: Mapping[str, float] = {}
        self.sent: list[int] = []

    def burst(self, rows: int) -> Burst:
        self.sent.append(rows)
        return Burst(rows, 0.5 + rows * (self.shed_row_s if self.accuracy else self.row_s))

    def shed(self, accuracy: Mapping[str, float]) -> None:
        assert accuracy in ({}, NONE_KEPT)
        self.accuracy = accuracy


def test_what_an_epoch_takes_whatever_its_rows_is_no_cost_of_a_row() -> None:
    assert slope(Burst(100, 1.5), Burst(1100, 3.5)) == pytest.approx(0.002)


def test_a_kept_row_is_held_against_one_of_an_app_that_may_not_shed() -> None:
    without, with_ = Epochs(0.001), Epochs(0.0012)
    found = costs_of_kept(without.burst, with_.burst, 1000, rounds=3)
    assert found.kept_row == pytest.approx(1.2)
    assert without.sent == with_.sent == [FEW, MANY * 1000] * 3


def test_one_round_that_was_disturbed_does_not_count() -> None:
    slow = iter([1.0, 1.0, 1.0, 9.0, 1.0, 1.0])

    def disturbed(rows: int) -> Burst:
        return Burst(rows, 0.5 + rows * 0.001 * next(slow))

    assert costs_of_kept(Epochs(0.001).burst, disturbed, 1000, rounds=3).kept_row == pytest.approx(1.0)


def test_a_shed_row_is_held_against_a_kept_one_of_the_same_app() -> None:
    free = Epochs(0.001, shed_row_s=0.00005)
    assert cost_of_shed(free.burst, free.shed, 1000, rounds=2) == pytest.approx(0.05)
    assert free.sent == [FEW, MANY * 1000, FEW, SHED * MANY * 1000] * 2
    assert free.accuracy == {}
