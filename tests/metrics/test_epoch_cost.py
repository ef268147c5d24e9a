"""What epochs cost, told from those that there were."""

from random import Random

import pytest

from springtide.metrics.load.epoch_cost import (
    EpochCost,
    EpochPace,
    StepCost,
    StepSample,
    epoch_cost,
    lengths_s,
    pace,
    step_cost,
)
from springtide.metrics.report import EpochReport, Phases


def samples(
    *rows: tuple[float, float], beside: float = 0.3, kept: float = 0.001, shed: float = 0.0
) -> list[StepSample]:
    return [StepSample(k, d, beside + k * kept + d * shed) for k, d in rows]


def report(total: float, lag: int, elapsed: float | None) -> EpochReport:
    return EpochReport("app", 0, 0.0, 1, False, 0, 0, lag, None, 0, Phases(compute_s=total), elapsed_s=elapsed)


def test_a_fixed_part_and_one_that_grows_are_told_apart() -> None:
    work = [0.5, 2.0, 5.0, 8.0]
    found = pace([0.4 + u / 1.5 for u in work], work, cores=2)
    assert found.fixed_s == pytest.approx(0.4, abs=0.05)
    assert found.cores == pytest.approx(1.5, abs=0.05)


def test_epochs_that_are_all_alike_are_taken_to_use_all_cores() -> None:
    found = pace([0.8] * 5, [1.0] * 5, cores=2)
    assert (found.fixed_s, found.cores) == (pytest.approx(0.3), pytest.approx(2.0))


def test_no_more_cores_than_there_are_and_no_negative_fixed_part() -> None:
    assert pace([0.5] * 3, [1.0, 3.0, 5.0], cores=2).cores == 2
    assert pace([0.1, 6.0], [1.0, 5.0], cores=2).fixed_s >= 0
    assert pace([0.3] * 3, [0.0] * 3, cores=2) == EpochPace(pytest.approx(0.3), 2.0)


def test_epochs_that_were_long_for_a_moment_do_not_make_rows_dear() -> None:
    """While rows are worked on, at least one core works."""
    calm = [0.2, 0.25, 0.3, 0.5, 0.6]
    found = pace([*(0.7 + u / 2 for u in calm), 5.0, 10.0], [*calm, 1.2, 1.3], cores=2)
    assert found.cores >= 1
    assert found.fixed_s > 0.7


def test_epochs_are_as_long_as_it_takes_for_most_of_one_to_be_for_rows() -> None:
    assert [EpochPace(fixed, 2.0).length_s(1.5, 4.0) for fixed in (0.1, 0.5, 1.0, 3.0)] == [1.5, 2.5, 4.0, 6.0]


def test_what_lies_between_two_epochs_counts_if_rows_waited() -> None:
    """It is then that it keeps them from being worked on; otherwise the app had nothing to do."""
    reports = [report(1.0, 0, 1.0), report(1.0, 50, 9.0), report(1.0, 0, 1.2), report(1.0, 0, 7.0)]
    assert lengths_s(reports) == [1.0, 1.0, 1.2, 1.0]


def test_the_three_parts_of_a_step_are_told_apart() -> None:
    rows = [(100, 0), (900, 0), (2000, 500), (1500, 1500), (1200, 4000), (800, 3000), (400, 6000)]
    found = step_cost(samples(*rows, beside=0.3, kept=0.001, shed=0.00005))
    assert found.kept_s == pytest.approx(0.001, rel=0.1)
    assert found.beside_s == pytest.approx(0.3, abs=0.1)
    assert found.shed_s == pytest.approx(0.00005, abs=0.00003)


@pytest.mark.parametrize("rows", [(0.0, 0.0), (1.0, 0.0), (500.0, 0.0), (200.0, 300.0)])
def test_in_epochs_that_are_all_alike_all_useful_time_is_for_rows(rows: tuple[float, float]) -> None:
    found = step_cost(samples(*[rows] * 5, beside=0.4))
    assert found.beside_s == pytest.approx(0.4 if rows[0] == 0 else 0.0, abs=1e-9)
    assert found.shed_s <= found.kept_s


def test_what_a_line_says_of_the_usual_epoch_is_right_whatever_it_says_of_its_parts() -> None:
    some = samples((500, 1500), (502, 1498), (499, 1503), beside=0.2, shed=0.0001)
    found = step_cost(some)
    assert found.beside_s + 500 * found.kept_s + 1500 * found.shed_s == pytest.approx(some[0].useful_s, rel=0.01)


def test_the_last_epochs_count_most() -> None:
    """A machine that slows down, or other rows than before."""
    before, after = samples((1000, 0), (500, 0), kept=0.001) * 8, samples((1000, 0), (500, 0), kept=0.002) * 8
    assert step_cost(before + after).kept_s > 0.0017


def test_of_noisy_epochs_the_line_is_near_the_true_one() -> None:
    random = Random(3)
    costs = []
    for _ in range(50):
        rows = [(random.uniform(2000, 9000), random.uniform(0, 9000)) for _ in range(32)]
        noisy = [StepSample(s.kept, s.shed, s.useful_s * random.gauss(1, 0.1)) for s in samples(*rows, shed=0.00003)]
        costs.append(step_cost(noisy))
    assert sum(0.0009 < cost.kept_s < 0.0011 for cost in costs) >= 45


def test_a_step_without_epochs_costs_nothing() -> None:
    assert step_cost([]) == StepCost(0.0, 0.0, 0.0)


LINE = EpochCost(EpochPace(0.5, 2.0), {"a": StepCost(0.1, 0.001, 0.0), "b": StepCost(0.1, 0.002, 0.0002)})


def test_the_line_tells_what_a_row_costs_and_how_many_an_epoch_has_room_for() -> None:
    shares = {"a": 1.0, "b": 0.5}
    assert LINE.row_s(shares) == pytest.approx((0.001 + 0.0011) / 2)
    assert LINE.rows_within(0.5 + 1.05, shares) == pytest.approx(1000)
    assert LINE.rows_within(0.3, shares) == 0.0
    assert EpochCost(EpochPace(0.5, 2.0), {}).rows_within(4.0, {}) is None


def test_the_more_rows_come_the_longer_epochs_have_to_be() -> None:
    assert LINE.epoch_for(0.0, {}, 0.9) == pytest.approx(0.5)
    found = LINE.epoch_for(300.0, {}, 0.9)
    assert found == pytest.approx(1.0), "half the time for rows, half for what is fixed"
    assert LINE.epoch_for(600.0, {}, 0.9) is None


def test_a_new_plan_tells_anew_how_many_cores_work_at_once() -> None:
    """And what a row costs is known from before."""
    rows = [(1000.0, 0.0), (3000.0, 0.0), (2000.0, 0.0), (4000.0, 0.0)] * 3
    step = {"count": samples(*rows, beside=0.0)}
    lengths = [0.4 + s.useful_s / (1 if i < 8 else 3) for i, s in enumerate(step["count"])]
    found = epoch_cost(lengths, step, 4, None, present=4)
    assert found.pace.cores == pytest.approx(3.0, abs=0.2)
    assert found.steps["count"].kept_s == pytest.approx(0.001, rel=0.05)


def test_a_moment_of_other_work_does_not_hide_that_workers_work_side_by_side() -> None:
    """Rows that pile up while the machine is slow make the slow epochs those with more rows, too."""
    work = [2.1, 2.0, 2.1, 2.0, 1.9, 2.0, 2.7, 3.1, 2.3, 2.0]
    slow = [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.7, 0.8, 0.0, 0.0]
    lengths = [0.3 + useful / 2.7 + other for useful, other in zip(work, slow, strict=True)]

    def line(alone: bool) -> EpochCost:
        return epoch_cost(
            lengths, {"count": [StepSample(1000 * u, 0.0, u, u / 2.7 if alone else None) for u in work]}, 3
        )

    assert line(alone=False).pace.cores < 2.3, "so the case is one"
    assert line(alone=True).pace.cores == pytest.approx(2.7)
