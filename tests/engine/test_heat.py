"""Heat: a fading mean of each slice's rows."""

import pytest

from springtide.engine.heat import FADING, Thermometer
from springtide.metrics.report import InstanceReport, OperatorReport


def epoch(*instances: tuple[tuple[int, int], ...]) -> list[OperatorReport]:
    return [OperatorReport("count", instances=tuple(InstanceReport(0, slice_rows=rows) for rows in instances))]


def test_the_first_epoch_is_taken_as_it_is() -> None:
    thermometer = Thermometer()
    thermometer.observe(epoch(((0, 10), (3, 40)), ((3, 2),)))
    assert thermometer.read() == {("count", 0): 10.0, ("count", 3): 42.0}


def test_a_slice_that_has_no_more_rows_cools() -> None:
    thermometer = Thermometer()
    thermometer.observe(epoch(((0, 100),)))
    for _ in range(3):
        thermometer.observe(epoch())
    assert thermometer.read()["count", 0] == pytest.approx(100 * FADING**3)


def test_the_mean_follows_the_rows() -> None:
    thermometer = Thermometer()
    for _ in range(60):
        thermometer.observe(epoch(((1, 30),)))
    assert thermometer.read()["count", 1] == pytest.approx(30)
    thermometer.observe(epoch(((1, 130),)))
    assert thermometer.read()["count", 1] == pytest.approx(50)
