"""`bench migrate`: its figures, and a short journey on real workers on which nothing is lost or counted twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from springtide.bench.experiments.migrate.bench import HEADERS, STRATEGIES, faults, figures_of, rows_of, sail
from springtide.bench.experiments.migrate.journey import (
    IN,
    OUT,
    Journey,
    Leg,
    Passed,
    Voyage,
    dataflow_of,
    legs,
    service_of,
    workers_of,
)
from springtide.bench.harness.arena import arena
from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import MigrationMeasures
from springtide.metrics.report import OperatorReport
from springtide.workloads.dataflows import DATAFLOWS, GRID, LINEAR


def test_each_strategy_starts_where_the_paper_has_it_start() -> None:
    assert legs(("drain", "capture"), IN) == (
        Leg("drain", IN),
        Leg("handover", OUT, measured=False),
        Leg("capture", IN),
    )
    assert legs(("drain",), None) == (Leg("drain", OUT), Leg("drain", IN))


def test_workers_and_service_times_are_what_this_machine_can_hold() -> None:
    assert {name: workers_of(dataflow) for name, dataflow in DATAFLOWS.items()} == {
        "linear": (1, 2),
        "diamond": (1, 2),
        "star": (1, 2),
        "grid": (1, 2),
        "traffic": (1, 2),
    }
    assert workers_of(GRID, most=100) == (6, 11), "as in table 1"
    assert service_of(LINEAR) == 0.005
    assert service_of(dataflow_of("linear-50")) == pytest.approx(0.25 / 400)


@pytest.mark.parametrize("name", ["square", "linear-", "linear-0", "linear-x", "grid-2"])
def test_a_dataflow_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected a dataflow of linear, diamond, star, grid, traffic or linear-N"):
        dataflow_of(name)


def test_figures_are_by_strategy_and_what_is_not_applicable_is_null() -> None:
    measures = MigrationMeasures(1.5, 0.25, 7.0, None, None, 30.0, 12)
    passed = Passed(Leg("drain", IN), Course("drain", 0.0), measures, 0.8, ())
    assert figures_of(passed) == {
        "replayed_drain": 12,
        "restore_s_drain": 1.5,
        "drain_s_drain": 0.25,
        "rebalance_s_drain": 7.0,
        "catchup_s_drain": None,
        "recovery_s_drain": None,
        "stabilise_s_drain": 30.0,
    }
    journeys = [Journey("star", (passed,), 1, 2, 3), Journey("grid", (), 10, 20, 30)]
    assert faults(journeys) == {"lost": 11, "duplicated": 22, "miscounted": 33}
    ((*row,),) = rows_of(journeys[0])
    assert len(row) == len(HEADERS)
    assert row[:3] == ["star in", "drain", "1.50"]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_short_journey() -> None:
    """Real workers, all of which are replaced; the sink gets every row once."""
    (captured,) = made("linear-2", Leg("capture", IN)).passed
    assert captured.measures.replayed_rows == 0
    assert not any(report.replayed for report in captured.reports)
    # An epoch in the midst of which all were replaced has its last step done by the new ones.
    before, after = (workers(captured.reports[place].operators[-1:]) for place in (0, -1))
    assert not before & after, "nobody stays"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_journey_by_force() -> None:
    """Workers come beside others, then all are killed; the sink gets every row once."""
    live, restarted = made("linear-2", Leg("handover", OUT), Leg("restart", IN)).passed
    assert live.measures.replayed_rows == 0
    assert restarted.measures.replayed_rows > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_long_journey() -> None:
    """Every strategy there and back."""
    journey = made("star", *legs(STRATEGIES, None))
    assert len(journey.passed) == 2 * len(STRATEGIES)
    for passed in journey.passed:
        assert (passed.measures.replayed_rows > 0) == (passed.leg.strategy == "restart"), passed.leg


def made(dataflow: str, *route: Leg) -> Journey:
    """A journey after which nothing is missing and nothing too much."""
    with arena("journey") as place:
        voyage = Voyage(Path(place.scratch), dataflow, route, 1, 2, calm_epochs=1, window_s=1.0, trigger_s=0.0)
        journey = sail(place, voyage)
    assert (journey.lost, journey.duplicated, journey.miscounted) == (0, 0, 0)
    return journey


def workers(operators: Sequence[OperatorReport]) -> frozenset[str]:
    """Who worked on some steps of an epoch."""
    return frozenset(instance.worker for operator in operators for instance in operator.instances)
