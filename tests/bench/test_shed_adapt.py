"""How long rows are shed once new workers serve, on a run that can be checked by hand."""

from pathlib import Path

import pytest
from rich.console import Console

from springtide.bench.experiments.shed.adapt import (
    Adapted,
    ShedAdaptBench,
    asked_s,
    ended_cycles,
    lag_cycles,
    least_accuracy,
    served_s,
)
from springtide.bench.experiments.shed.figures import CYCLE_S
from springtide.control.adapt.ledger import Record
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases, QueryReport
from springtide.policies.decision import Decision, Hold, Scale
from springtide.policies.past import Entry

STEP_S = 1000.0
RATES = (100.0, 400.0)


def epoch(ended_s: float, workers: str, kept: int = 100, lag_rows: int = 0) -> EpochReport:
    """100 rows in 2 s, of which some are kept; a worker is a letter, and a capital one stands by without rows."""
    instances = tuple(InstanceReport(n, 50 if w.islower() else 0, worker=w.lower()) for n, w in enumerate(workers))
    account = QueryReport("out", 100, kept, 100 - kept, 0, kept / 100)
    return EpochReport(
        "app",
        0,
        STEP_S + ended_s,
        1,
        False,
        100,
        0,
        lag_rows,
        0.0,
        0,
        Phases(compute_s=2.0),
        (OperatorReport("count", instances=instances),),
        queries=(account,),
    )


def record(at_s: float, decision: Decision) -> Record:
    return Record(Entry(1, STEP_S + at_s, decision, decision), "ds2", "progressive", {}, {})


def adapted(*epochs: EpochReport, records: tuple[Record, ...] = ()) -> Adapted:
    return Adapted(epochs, records, STEP_S, STEP_S + 40, RATES)


RUN = adapted(
    epoch(-4, "a"),
    epoch(2, "a", lag_rows=600),
    epoch(6, "aB", 50, lag_rows=2000),
    epoch(10, "ab", 60),
    epoch(20, "ab", 90),
    epoch(22, "ab"),
    epoch(38, "ab"),
    records=(
        record(-9, Scale(2, "before")),
        record(1, Hold("wait")),
        record(4, Scale(2, "load")),
        record(9, Scale(3, "on")),
    ),
)


def test_workers_are_asked_for_with_the_first_decision_after_the_step() -> None:
    assert asked_s(RUN) == pytest.approx(4.0)
    assert asked_s(adapted(epoch(2, "a"), records=(record(1, Hold("wait")),))) is None


def test_new_workers_serve_once_they_have_rows() -> None:
    assert served_s(RUN) == pytest.approx(10 - 2.0), "one that stands by does not serve"
    assert served_s(adapted(epoch(-4, "a"), epoch(2, "a"))) is None


def test_shedding_has_ended_with_the_last_epoch_that_sheds() -> None:
    assert ended_cycles(RUN) == pytest.approx((20 - 8) / CYCLE_S)
    assert ended_cycles(adapted(epoch(-4, "a"), epoch(2, "a", 50), epoch(10, "ab"))) == 0, "before they served"
    assert ended_cycles(adapted(epoch(-4, "a"), epoch(10, "ab"), epoch(37, "ab", 99))) is None, "it goes on"
    assert ended_cycles(adapted(epoch(-4, "a"), epoch(2, "a", 50))) is None, "nobody came"


def test_the_lag_is_in_cycles_of_what_arrives_since_the_step() -> None:
    assert lag_cycles(RUN)[:2] == [(pytest.approx(2.0), pytest.approx(0.3)), (pytest.approx(6.0), pytest.approx(1.0))]
    assert least_accuracy(RUN) == 0.5


def test_all_figures_are_there_and_a_picture(tmp_path: Path) -> None:
    findings = ShedAdaptBench()._findings({"with": RUN, "without": RUN})
    assert {"workers_asked_s", "served_s", "ended_cycles", "lag_cycles_with", "lag_cycles_without"} <= set(
        findings.figures
    )
    findings.publish(tmp_path, as_json=False, console=Console(quiet=True))
    assert (tmp_path / "bench-shed-adapt.png").stat().st_size > 10_000
