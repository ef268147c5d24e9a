"""The figures of an overload, on a run that can be checked by hand."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from springtide.bench.experiments.shed.bench import Measured, ShedBench
from springtide.bench.experiments.shed.figures import (
    CYCLE_S,
    accounting_error,
    accuracies,
    lag_cycles,
    latencies,
    percentile,
    recovered_cycles,
)
from springtide.bench.experiments.shed.overload import Arrivals, Overload, Overloaded
from springtide.bench.experiments.shed.staged import since_full, throughput
from springtide.metrics.report import EpochReport, Phases, QueryReport, SourceReport

BEGAN_S = 1000.0
EPOCH_S = 2.0


def track(taken: list[int], kept: list[int]) -> Overloaded:
    """Two topics, 50 drives a second each for 20 s; epochs of 2 s that take and keep the given drives of each."""
    reports = []
    for number, (rows, good) in enumerate(zip(taken, kept, strict=True)):
        account = QueryReport("speeds", 2 * rows, 2 * good, 2 * (rows - good), 0, good / rows if rows else 1.0)
        found = tuple(SourceReport(topic, rows) for topic in ("hailed", "booked"))
        reports.append(
            EpochReport(
                "app",
                number,
                BEGAN_S + EPOCH_S * (number + 1),
                1,
                False,
                2 * rows,
                0,
                0,
                0.0,
                0,
                Phases(compute_s=EPOCH_S),
                (),
                sources=found,
                queries=(account,),
            )
        )
    line = Arrivals(np.array([BEGAN_S - CYCLE_S, BEGAN_S + 20.0]), np.array([0.0, 1250.0]))
    return Overloaded(
        "with",
        tuple(reports),
        {"hailed": line, "booked": line},
        BEGAN_S,
        (BEGAN_S + 4, BEGAN_S + 10),
        BEGAN_S + 20.0,
        2 * sum(taken),
        {"speeds": 2 * sum(kept)},
    )


def test_the_lag_is_what_waits_in_cycles_of_arrivals() -> None:
    """250 drives of a topic are there at the start, and the first epoch, which lasts 2 s, takes them all."""
    found = lag_cycles(track([250, 100, 100], [250, 100, 100]))
    assert [at for at, _ in found] == pytest.approx([0.0, 2.0, 4.0, 20.0])
    # After the last epoch nobody takes any more: drives of 16 s wait in the end.
    assert [lag for _, lag in found] == pytest.approx([1.0, 0.4, 0.4, 16 / 5])


def test_an_app_has_recovered_when_less_than_a_cycle_waits_for_good() -> None:
    """The rate begins to fall at 10 s."""
    keeps_up = [250, *[100] * 9]
    assert recovered_cycles(track(keeps_up, keeps_up)) == 0, "a cycle waits at the start alone"
    late = [250, 0, 0, 0, 100, 100, 200, 200, 100, 100]
    # Of each topic 400 drives wait at 12 s, 300 at 14 s and 200 at 16 s, and 250 are a cycle.
    assert recovered_cycles(track(late, late)) == pytest.approx((16 - 10) / CYCLE_S)
    never = [250, *[0] * 9]
    assert recovered_cycles(track(never, never)) is None


def test_latency_is_from_sending_to_publication_and_counts_for_drives_that_are_processed() -> None:
    found, weights = latencies(track([250, 100], [250, 50]))
    assert len(found) == len(weights) == 2 * 350
    assert (found[0], found[249]) == (pytest.approx(7.0, abs=0.02), pytest.approx(2.0, abs=0.02))
    assert (found[250], found[349]) == (pytest.approx(4.0, abs=0.02), pytest.approx(2.0, abs=0.02))
    assert sum(weights) == pytest.approx(2 * 300)


def test_a_percentile_goes_by_weight() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 98.0, 1.0])
    assert [percentile(values, weights, share) for share in (0.5, 0.99, 1.0)] == [1.0, 2.0, 3.0]


def test_every_drive_that_is_unaccounted_for_is_an_error() -> None:
    good = track([250, 100], [250, 50])
    assert accounting_error(good) == 0
    assert accounting_error(replace(good, sent=good.sent + 3)) == 3, "sent and never offered"
    assert accounting_error(replace(good, counted={"speeds": good.counted["speeds"] - 2})) == 2, "not in the result"
    broken = replace(good.reports[0], queries=(replace(good.reports[0].queries[0], shed=5),))
    assert accounting_error(replace(good, reports=(broken, good.reports[1]))) == 5, "in an epoch's own sum"
    plain = tuple(replace(report, queries=()) for report in good.reports)
    assert accounting_error(replace(good, reports=plain, counted={"speeds": 700})) == 0
    assert accounting_error(replace(good, reports=plain, counted={"speeds": 699})) == 1


def test_accuracies_are_those_of_cycles_with_drives() -> None:
    """Epochs end at 2 and 4 s, in the first cycle, at 6 and 8 s, in the second, and at 10 s."""
    found = accuracies(track([100, 300, 0, 0, 100], [100, 100, 0, 0, 40]), "speeds")
    assert found == [(5.0, 0.5), (15.0, 0.4)]


def test_the_capacity_counts_what_lies_between_epochs() -> None:
    """Six seconds from the end of the first full epoch to that of the last; epochs may take 400 rows of two topics."""
    reports = since_full(track([7, 900, 200, 300, 210], [0] * 5).reports, 400)
    assert throughput(reports, 400) == pytest.approx(2 * (200 + 300 + 210) / 6.0)


def test_there_is_no_capacity_if_the_app_works_off_all_that_comes() -> None:
    reports = since_full(track([7, 900, 200, 199, 210], [0] * 5).reports, 400)
    assert throughput(reports, 400) is None


def test_the_rate_is_low_then_rises_stays_and_falls() -> None:
    course = Overload((10.0, 5.0, 4.0, 3.0), 2.0, (0.5, 2.0))
    rate = course.profile(400.0)
    by_second = [rate.due_rows(s + 1.0) - rate.due_rows(float(s)) for s in range(24)]
    assert by_second[:2] == pytest.approx([100] * 2, abs=1)
    assert all(later > earlier for earlier, later in pairwise(by_second[1:12]))
    assert by_second[12:17] == pytest.approx([400] * 5, abs=1)
    assert by_second[21:] == pytest.approx([100] * 3, abs=1)


def test_all_figures_are_there_and_a_picture(tmp_path: Path) -> None:
    ours, peer = track([250, 100, 100], [250, 50, 50]), track([250, 100], [250, 100])
    peer = replace(peer, name="without", reports=tuple(replace(r, queries=()) for r in peer.reports))
    capacities, costs = {"with": 100.0, "without": 90.0}, {"cost_of_shed_row": 0.05}
    measured = Measured({"with": ours, "without": peer}, capacities, costs=costs)
    findings = ShedBench(phases_s=(5.0, 5.0, 5.0, 5.0))._findings(measured)
    assert findings.figures["accounting_error"] == 0
    assert findings.figures["accuracy_speeds_worst"] == 0.5
    assert findings.figures["cost_of_shed_row"] == 0.05
    each = ("lag_cycles", "recovered_cycles", "p99_latency_s", "capacity_rows_per_s")
    assert {f"{what}_{who}" for what in each for who in ("with", "without")} <= set(findings.figures)
    findings.publish(tmp_path, as_json=False, console=Console(quiet=True))
    assert (tmp_path / "bench-shed.png").stat().st_size > 10_000
