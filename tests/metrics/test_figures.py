"""The figures of an epoch, and what epochs come to."""

from dataclasses import replace

import pytest

from springtide import codec
from springtide.metrics.epoch_figures import FIGURES, figure, figures, rate
from springtide.metrics.report import EpochReport, OperatorReport, Phases, QueryReport
from springtide.metrics.totals import Spread, Totals

EPOCH = EpochReport("app", 4, 100.0, 1, False, 1000, 5, 40, 1.5, 7, Phases(compute_s=0.25), elapsed_s=0.5)


def test_the_rate_is_over_the_time_since_the_epoch_before_it_in_the_same_run() -> None:
    assert figure("rows_per_s", EPOCH) == 2000.0
    assert figure("rows_per_s", replace(EPOCH, elapsed_s=0.0)) == 0.0


def test_an_old_report_is_measured_by_its_own_time() -> None:
    old = replace(EPOCH, elapsed_s=None)
    assert figure("rows_per_s", old) == 4000.0
    assert rate([old, EPOCH]) == pytest.approx(2000 / 0.75)
    assert rate([]) is None


def test_old_reports_can_be_read() -> None:
    """Written before there were sources, queries, the elapsed time, and what was published again."""
    line = (
        '{"app": "app", "epoch": 3, "ended_at": 1.0, "plan": 1, "replayed": true, "rows_in": 9, "rows_out": 1, '
        '"lag_rows": null, "latency_s": null, "dead_letters": 0, "operators": [], "retries": 0, "phases": '
        '{"plan_s": 0.0, "compute_s": 3.0, "commit_s": 0.0, "publish_s": 0.0, "collect_s": 0.0}}'
    )
    report = codec.loads(EpochReport, line)
    assert (report.elapsed_s, report.published_again) == (None, False)
    assert figures(report)["rows_per_s"] == 3.0


def test_sums_over_steps_and_queries() -> None:
    steps = (OperatorReport("a", late_rows=1, state_rows=10, state_bytes=5), OperatorReport("b", late_rows=2))
    queries = (QueryReport("low", 10, 4, 6, 0, 0.4), QueryReport("high", 10, 9, 1, 0, 0.9))
    found = figures(replace(EPOCH, operators=steps, queries=queries))
    assert (found["late_rows"], found["state_rows"], found["state_bytes"]) == (3, 10, 5)
    assert (found["shed_rows"], found["accuracy"]) == (7, 0.4)
    assert figures(EPOCH)["accuracy"] is None


def test_each_figure_says_what_it_is() -> None:
    assert len({each.name for each in FIGURES}) == len(FIGURES)
    assert all(each.unit and each.counted and each.meaning.endswith(".") for each in FIGURES)


def test_totals_grow_with_every_epoch_and_each_counts_once() -> None:
    reports = [EPOCH, replace(EPOCH, epoch=5), replace(EPOCH, replayed=True), replace(EPOCH, epoch=6, rows_in=1)]
    seen = [Totals()]
    for report in reports:
        seen.append(seen[-1].after(report))
    assert [totals.count("rows_total") for totals in seen] == [0, 1000, 2000, 2000, 2001]
    assert [totals.count("epochs_again_total") for totals in seen] == [0, 0, 0, 1, 1]
    assert Totals.of(reports) == seen[-1]


def test_an_epoch_that_nobody_has_told_of_counts_when_it_is_published_again() -> None:
    """The driver that committed it ended before its report. Its times are not this run's."""
    untold = replace(EPOCH, replayed=True, published_again=True, untold=True)
    totals = Totals.of([untold, replace(untold, untold=False)])
    assert totals.count("rows_total") == 1000
    assert totals.count("dead_letters_total") == 7
    assert (totals.count("epochs_total"), totals.count("epochs_again_total")) == (1, 2)
    assert not totals.spreads.get("epoch_seconds")


def test_a_bucket_takes_its_upper_bound_in() -> None:
    assert Spread().after(0.05).counts[0] == 1
    assert Spread().after(0.051).counts[1] == 1
    assert Spread().after(1e9).counts[-1] == 1
