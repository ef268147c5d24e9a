"""Calibration finds the costs that made the reports."""

import pytest
from simulator_kit import small

from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases
from springtide.simulator.calibrate import calibrated, fit, validate
from springtide.simulator.scenario.fields import BadScenario

SERVICE_S, OVERHEAD_S = 40e-6, 0.3


def reports(count: int = 40) -> list[EpochReport]:
    """An app whose epochs cost exactly what it is told, on two instances, with rows that vary."""
    found, at = [], 1_000.0
    for epoch in range(count):
        rows = 10_000 + 2_000 * (epoch % 5)
        instances = tuple(InstanceReport(i, rows // 2, rows // 4, process_s=rows // 2 * SERVICE_S) for i in range(2))
        step = OperatorReport("count", rows, rows // 2, state_rows=500, state_bytes=25_000, instances=instances)
        took_s = OVERHEAD_S + rows // 2 * SERVICE_S
        at += took_s
        found.append(
            EpochReport("app", epoch, at, 1, False, rows, rows // 2, rows, None, 0, Phases(compute_s=took_s), (step,))
        )
    return found


def test_costs_are_found_again() -> None:
    found = fit(reports())
    step = found.steps["count"]
    assert step.service_s == pytest.approx(SERVICE_S, rel=0.01)
    assert step.selectivity == pytest.approx(0.5)
    assert found.overhead_s == pytest.approx(OVERHEAD_S, rel=0.01)
    assert (step.keys, step.key_bytes, step.instances) == (500, 50.0, 2)


def test_a_simulation_of_the_same_rows_agrees() -> None:
    figures = validate(reports(), fit(reports()))
    for name, (recorded, simulated) in figures.items():
        assert simulated == pytest.approx(recorded, rel=0.15), name
    assert set(figures) == {"rows a second", "seconds an epoch, median", "seconds an epoch, mean", "rows behind"}


def test_a_scenario_takes_the_costs_of_steps_it_knows() -> None:
    scenario = calibrated(small(), fit(reports()))
    split, count = scenario.operators
    assert count.service_s == pytest.approx(SERVICE_S, rel=0.01)
    assert split == small().operators[0]
    assert scenario.flow.overhead_s == pytest.approx(OVERHEAD_S, rel=0.01)


def test_a_scenario_of_other_steps_is_refused() -> None:
    with pytest.raises(BadScenario, match="one named as a step of the app: count"):
        calibrated(small(**{'name = "count"': 'name = "sum"'}), fit(reports()))


def test_too_few_epochs_are_refused() -> None:
    with pytest.raises(BadScenario, match="3 epochs or more with rows in keyed steps, got 2"):
        fit(reports(2))
