"""What the controller promises under overload, on runs that can be checked by hand."""

import numpy as np
import pytest

from springtide.bench.experiments.shed.figures import CYCLE_S
from springtide.bench.experiments.shed.overload import Arrivals, Overloaded
from springtide.bench.experiments.shed.promises import acted, growth
from springtide.control.shed.log import ShedDecision
from springtide.metrics.report import EpochReport, Phases, QueryReport, SourceReport

STEP_S = 1000.0
RATE = 100.0


def epoch(number: int, start_s: float, length_s: float, rows: int, shed: int = 0) -> EpochReport:
    account = QueryReport("speeds", rows, rows - shed, shed, 0)
    return EpochReport(
        "app",
        number,
        STEP_S + start_s + length_s,
        1,
        False,
        rows,
        0,
        0,
        0.0,
        0,
        Phases(compute_s=length_s),
        (),
        sources=(SourceReport("hailed", rows),),
        queries=(account,),
    )


def track(*epochs: EpochReport, told: tuple[tuple[float, float], ...] = ()) -> Overloaded:
    """100 drives a second for 40 s from 10 s before the step on; the peak is from 5 s to 25 s."""
    line = Arrivals(np.array([STEP_S - 10, STEP_S + 30]), np.array([0.0, 4000.0]))
    decisions = tuple(ShedDecision(STEP_S + at, {}, {}, (), missing=missing) for at, missing in told)
    return Overloaded(
        "with", epochs, {"hailed": line}, STEP_S, (STEP_S + 5, STEP_S + 25), STEP_S + 30, 4000, {}, decisions
    )


def test_it_has_acted_when_the_first_epoch_that_sheds_begins() -> None:
    before = (epoch(0, -3.0, 2.0, 500, shed=9), epoch(1, -1.0, 3.0, 200))
    found = acted(
        track(*before, epoch(2, 2.5, 4.0, 300), epoch(3, 7.0, 2.0, 300, shed=1), epoch(4, 9.0, 2.0, 9, shed=5))
    )
    assert found is not None
    assert found.acted_s == pytest.approx(7.0), "what was shed before the step is no answer to it"
    assert found.bar_s == pytest.approx(CYCLE_S + 4.0), "the epoch before was under way"
    assert acted(track(*before)) is None


def half_taken() -> tuple[EpochReport, ...]:
    """Epochs of 4 s that take 200 of the 400 drives that come meanwhile: 50 a second are left over."""
    return tuple(epoch(n, 4.0 * n - 12.0, 4.0, 200) for n in range(12))


def test_growth_is_that_since_the_first_decision_in_the_peak_that_foretells_some() -> None:
    found = growth(track(*half_taken(), told=((3.0, 70.0), (6.0, 0.0), (10.0, 40.0), (20.0, 60.0), (27.0, 900.0))))
    assert found is not None
    assert found.foretold_rows == pytest.approx(40 * 10 + 60 * 5), "each holds until the next, the last until the end"
    assert found.lag_rows == pytest.approx(50 * 15), "an epoch works its drives off evenly"


def test_what_was_foretold_before_the_peak_and_holds_on_counts_from_its_beginning() -> None:
    found = growth(track(*half_taken(), told=((3.0, 50.0),)))
    assert found is not None
    assert (found.foretold_rows, found.lag_rows) == (pytest.approx(50 * 20), pytest.approx(50 * 20))


def test_where_nothing_is_foretold_there_is_nothing_to_hold_against() -> None:
    assert growth(track(*half_taken())) is None
    assert growth(track(*half_taken(), told=((3.0, 50.0), (4.0, 0.0), (26.0, 9.0)))) is None


def test_drives_of_an_epoch_are_worked_off_evenly_and_none_between_epochs() -> None:
    found = track(epoch(0, 0.0, 4.0, 200), epoch(1, 6.0, 2.0, 100))
    assert [found.worked_off_by(STEP_S + at) for at in (-1, 1, 4, 5, 7, 9)] == pytest.approx(
        [0, 50, 200, 200, 250, 300]
    )
