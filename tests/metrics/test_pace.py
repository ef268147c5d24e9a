"""How long epochs take."""

import pytest

from springtide.metrics.pace import EpochPace, beside_rows_s, pace, useful_s
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases


def report(useful: float, total: float, rows: int = 0) -> EpochReport:
    instances = (InstanceReport(0, process_s=useful / 4), InstanceReport(1, serialise_s=useful / 4))
    operator = OperatorReport("count", rows, map_busy_s=useful / 2, instances=instances)
    return EpochReport("app", 0, 0.0, 1, False, 0, 0, None, None, 0, Phases(compute_s=total), (operator,))


def test_useful_time_is_that_of_all_instances_and_of_reading() -> None:
    assert useful_s(report(4.0, 3.0)) == pytest.approx(4.0)


def test_a_fixed_part_and_one_that_grows_are_told_apart() -> None:
    found = pace([report(u, 0.4 + u / 1.5) for u in (0.5, 2.0, 5.0, 8.0)], cores=2)
    assert found.fixed_s == pytest.approx(0.4, abs=0.05)
    assert found.cores == pytest.approx(1.5, abs=0.05)


def test_epochs_that_are_all_alike_are_taken_to_use_all_cores() -> None:
    found = pace([report(1.0, 0.8)] * 5, cores=2)
    assert (found.fixed_s, found.cores) == (pytest.approx(0.3), pytest.approx(2.0))


def test_no_more_cores_than_there_are_and_no_negative_fixed_part() -> None:
    assert pace([report(1.0, 0.5), report(3.0, 0.5), report(5.0, 0.5)], cores=2).cores == 2
    assert pace([report(1.0, 0.1), report(5.0, 6.0)], cores=2).fixed_s >= 0
    assert pace([report(0.0, 0.3)] * 3, cores=2) == EpochPace(pytest.approx(0.3), 2.0)


def test_epochs_that_were_long_for_a_moment_do_not_make_rows_dear() -> None:
    """While rows are worked on, at least one core works."""
    calm = [report(u, 0.7 + u / 2) for u in (0.2, 0.25, 0.3, 0.5, 0.6)]
    found = pace([*calm, report(1.2, 5.0), report(1.3, 10.0)], cores=2)
    assert found.cores >= 1
    assert found.fixed_s > 0.7


def test_longer_epochs_leave_more_room() -> None:
    found = EpochPace(0.5, 2.0)
    assert [found.room(s) for s in (0.25, 0.5, 1.0, 2.0)] == [0.0, 0.0, 1.0, 1.5]


def test_what_is_for_rows_and_what_is_in_every_epoch_are_told_apart() -> None:
    reports = [report(0.3 + rows * 0.001, 1.0, rows) for rows in (20, 100, 400, 1500)]
    assert beside_rows_s(reports, "count") == pytest.approx(0.3, abs=0.03)
    assert beside_rows_s(reports, "another") == 0.0
    found = pace([report(0.3 + u, 0.5 + (0.3 + u) / 2) for u in (0.1, 1.0, 4.0)], 2, beside_s=0.3)
    assert (found.fixed_s, found.cores) == (pytest.approx(0.65, abs=0.02), pytest.approx(2.0, abs=0.02))


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_in_epochs_that_are_all_alike_all_useful_time_is_for_rows(rows: int) -> None:
    assert beside_rows_s([report(0.4, 1.0, rows)] * 5, "count") == pytest.approx(0.4 if rows == 0 else 0.0)


def test_no_more_is_in_every_epoch_than_in_the_shortest_and_no_less_than_nothing() -> None:
    assert beside_rows_s([report(u, 1.0, n) for n, u in ((10, 0.1), (20, 3.0), (30, 2.0))], "count") <= 0.1
    assert beside_rows_s([report(u, 1.0, n) for n, u in ((10, 0.1), (20, 0.5), (30, 4.0))], "count") == 0.0
