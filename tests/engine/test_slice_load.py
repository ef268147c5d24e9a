"""Heat: each slice's rows of late."""

import pytest

from springtide.engine.ownership.slice_load import LATELY, slice_load
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases


def epoch(*instances: tuple[tuple[int, int], ...]) -> EpochReport:
    operator = OperatorReport("count", instances=tuple(InstanceReport(0, slice_rows=rows) for rows in instances))
    return EpochReport("app", 0, 0.0, 1, False, 0, 0, None, None, 0, Phases(), (operator,))


def test_rows_of_all_instances_an_epoch() -> None:
    assert slice_load([epoch(((0, 10), (3, 40)), ((3, 2),)), epoch(((0, 20),))]) == {
        ("count", 0): 15.0,
        ("count", 3): 21.0,
    }
    assert slice_load([]) == {}


def test_what_was_long_ago_does_not_count() -> None:
    reports = [epoch(((1, 1000),)), *(epoch(((2, 30),)) for _ in range(LATELY))]
    assert slice_load(reports) == {("count", 2): pytest.approx(30.0)}
