"""The measures of a migration, case by case."""

import json
from dataclasses import replace

import pytest
from migration_kit import SHORT, course, every_second, report

from springtide import codec
from springtide.metrics.migration.measures import MigrationMeasures, measure


def test_restart_is_measured_as_people_would_see_it() -> None:
    """Killed in epoch 10; the checkpoint is that of epoch 6; results from 21 s on, at first to make up for the stop."""
    before = every_second(0, 9)
    repeated = [report(n, 17.0 + (n - 6) * 0.5, took=0.5, replayed=True) for n in (7, 8, 9)]
    after = [report(10, 21.0, 40, took=2.5), report(11, 22.0, 60), *(report(n, 11.0 + n) for n in range(12, 60))]
    found = measure(
        course("restart", 9.5, 17.0, last=10, prepare=9.5, commit=9.5, swap=9.5, init=16.0, done=17.0),
        [*before, *repeated, *after],
        SHORT,
    )
    assert (found.restore_s, found.catchup_s, found.recovery_s) == (11.5, 11.5, 11.5)
    assert (found.drain_s, found.rebalance_s) == (0.0, 6.5)
    assert found.replayed_rows == 3 * 10 + 40
    assert found.stabilise_s == pytest.approx(12.5, abs=0.5)


def test_repeated_epochs_are_output_on_request_only() -> None:
    """Sinks had their rows before, and do not get them again."""
    reports = [*every_second(0, 9), report(9, 15.0, replayed=True), report(10, 20.0)]
    restart = course("restart", 9.5, 14.0, init=12.0, swap=9.5)
    assert measure(restart, reports).restore_s == 10.5
    assert measure(restart, reports, repeats_are_output=True).restore_s == 5.5


def test_drain_finishes_what_is_under_way_and_has_nothing_to_catch_up_with() -> None:
    reports = [*every_second(0, 10), report(11, 16.0), report(12, 17.0)]
    found = measure(
        course("drain", 9.5, 14.5, last=10, prepare=9.5, commit=10.25, swap=10.5, init=13.5, done=14.5), reports, SHORT
    )
    assert (found.restore_s, found.drain_s, found.rebalance_s) == (6.5, 1.0, 3.0)
    assert (found.catchup_s, found.recovery_s, found.replayed_rows) == (None, None, 0)


def test_capture_goes_on_with_the_epoch_that_was_under_way() -> None:
    reports = [*every_second(0, 9), report(10, 14.0), report(11, 16.0), report(12, 17.0)]
    found = measure(course("capture", 9.5, 13.0, last=10, prepare=9.5, swap=10.0, init=12.5), reports, SHORT)
    assert (found.restore_s, found.drain_s, found.rebalance_s) == (4.5, 0.5, 2.5)
    assert (found.catchup_s, found.recovery_s, found.replayed_rows) == (4.5, None, 0)


def test_what_capture_lets_finish_is_out_before_the_swap() -> None:
    reports = [*every_second(0, 10), report(11, 16.0)]
    asked = course("capture", 9.5, 13.0, last=10, prepare=9.5, swap=10.5, init=12.5)
    assert measure(asked, reports).catchup_s == 0.5


def test_a_live_migration_is_measured_by_the_longest_time_without_output() -> None:
    ends = [10.0, 11.0, 13.5, 14.5, 15.5, 19.0, 30.0]
    reports = [*every_second(0, 9), *(report(10 + i, end) for i, end in enumerate(ends))]
    found = measure(course("progressive", 9.5, 15.0, starting=9.5, copying=11.0, moving=14.0, done=15.0), reports)
    assert found.restore_s == 2.5, "what comes after the first output that follows it is not its doing"
    assert (found.drain_s, found.rebalance_s, found.catchup_s) == (0.0, 5.5, 0.5)
    assert (found.recovery_s, found.replayed_rows) == (None, 0)


def test_without_its_first_phase_a_live_migration_lasts_from_the_request() -> None:
    assert measure(course("handover", 9.5, 15.0, copying=11.0), every_second(0, 20)).rebalance_s == 5.5


@pytest.mark.parametrize("asked_at", [9.0, 9.5])
def test_an_epoch_without_rows_is_no_output(asked_at: float) -> None:
    reports = [*every_second(0, 9), report(10, 10.0, out=0), report(11, 11.0, out=0), *every_second(12, 15)]
    assert measure(course("lazy", asked_at, 9.75), reports).restore_s == 12.0 - asked_at
    stopped = course("drain", asked_at, 10.5, prepare=9.5, swap=9.5, init=10.0)
    assert measure(stopped, reports).restore_s == 12.0 - asked_at


# What is not known, or does not apply.


def test_of_a_migration_that_goes_on_little_is_known() -> None:
    for strategy in ("restart", "drain", "capture", "progressive"):
        found = measure(course(strategy, 9.5, prepare=9.5), every_second(0, 9))
        assert found == MigrationMeasures(
            None, 0.0 if strategy in ("restart", "progressive") else None, None, None, None, None, 0
        )


@pytest.mark.parametrize("strategy", ["restart", "drain", "capture", "handover"])
def test_without_any_reports_the_phases_alone_tell(strategy: str) -> None:
    found = measure(course(strategy, 1.0, 9.0, prepare=1.0, swap=3.0, init=8.0), [])
    drain_s, rebalance_s = (2.0 if strategy in ("drain", "capture") else 0.0), (8.0 if strategy == "handover" else 5.0)
    assert found == MigrationMeasures(None, drain_s, rebalance_s, None, None, None, 0)


def test_one_that_was_given_up_before_the_swap_is_measured_as_if_live() -> None:
    reports = [*every_second(0, 10), report(11, 15.0), report(12, 16.0)]
    found = measure(course("drain", 9.5, 13.0, prepare=9.5, failed=13.0), reports)
    assert (found.restore_s, found.drain_s, found.rebalance_s) == (5.0, 3.5, None)


def test_one_that_had_nothing_to_do_disturbs_nothing() -> None:
    found = measure(course("drain", 10.5, 10.5, done=10.5), every_second(0, 80), SHORT)
    assert found == MigrationMeasures(0.5, None, None, None, None, 0.0, 0)


def test_a_cancelled_live_one_lasts_until_it_was_over() -> None:
    found = measure(course("progressive", 9.5, 20.0, copying=11.0, cancelled=20.0), every_second(0, 30))
    assert (found.restore_s, found.rebalance_s) == (1.0, 10.5)


def test_with_nothing_before_the_request_there_is_nothing_to_expect_nor_to_catch_up_with() -> None:
    found = measure(course("handover", 0.0, 3.0), [report(n, n + 2.0) for n in range(80)], SHORT)
    assert (found.restore_s, found.catchup_s, found.stabilise_s) == (2.0, 0.0, None)
    told = replace(SHORT, expected_rows_per_s=10.0)
    assert measure(course("handover", 0.0, 3.0), every_second(1, 80), told).stabilise_s == 0.0


def test_an_epoch_that_ends_with_the_request_was_before_it() -> None:
    reports = every_second(0, 30)
    found = measure(course("handover", 10.0, 12.0), reports)
    assert (found.restore_s, found.catchup_s) == (1.0, 1.0), "epoch 11 began with the request, at the latest"
    idle = [report(n, float(n), took=0.25) for n in range(30)]
    assert measure(course("handover", 10.0, 12.0), idle).catchup_s == 0.0


def test_what_ends_with_a_phase_was_before_it() -> None:
    assert measure(course("drain", 9.5, 12.0, swap=9.5, init=11.0), every_second(0, 30)).restore_s == 2.5
    late = [*every_second(0, 12), report(13, 15.0), report(14, 20.0)]
    assert measure(course("handover", 9.5, 12.0), late).restore_s == 3.0


def test_a_migration_that_disturbs_late_is_not_steady_from_the_beginning() -> None:
    reports = [*every_second(0, 50), *every_second(60, 120)]
    assert measure(course("progressive", 20.0, 25.0), reports, SHORT).stabilise_s == 0.0
    assert measure(course("progressive", 20.0, 55.0), reports, SHORT).stabilise_s == pytest.approx(39.5, abs=1.0)


def test_what_stopped_is_not_steady_before_results_flow_again() -> None:
    """Nothing for 5 s and then all of it at once: on average over 20 s as much as always."""
    reports = [*every_second(0, 30), report(31, 36.0, 50), *every_second(37, 120)]
    asked = course("drain", 30.5, 34.0, prepare=30.5, swap=31.0, init=33.0, done=34.0)
    smooth = replace(SHORT, window_s=30.0, smooth_s=20.0, tolerance=0.3)
    found = measure(asked, reports, smooth)
    assert found.restore_s == found.stabilise_s == 5.5


def test_phases_in_no_order_never_take_less_than_no_time() -> None:
    found = measure(course("capture", 9.0, 8.0, prepare=9.0, swap=8.0, init=7.0), every_second(0, 12))
    assert (found.drain_s, found.rebalance_s) == (0.0, 0.0)
    assert found.restore_s is not None
    assert found.restore_s >= 0


# What was done again.


def test_an_attempt_that_was_cancelled_counts_for_each_time_if_retries_count() -> None:
    reports = [*every_second(0, 9), report(10, 12.0, 7, took=2.5, retries=2), *every_second(13, 20)]
    asked = course("restart", 9.75, 11.0, last=10, swap=9.75, init=10.5)
    assert measure(asked, reports).replayed_rows == 14
    assert measure(asked, reports, retries_count=False).replayed_rows == 7, "that much is known without"
    assert measure(replace(asked, last_begun=None), reports, retries_count=False).replayed_rows == 0
    assert measure(course("handover", 9.75, 11.0), reports).replayed_rows == 14


def test_what_is_repeated_later_has_another_cause() -> None:
    lost = [report(n, 30.0 + n, replayed=True) for n in (12, 13, 14)]
    later = [report(15, 50.0, retries=1), report(16, 51.0)]
    assert measure(course("handover", 9.5, 12.5), [*every_second(0, 14), *lost, *later]).replayed_rows == 0


def test_rows_that_were_out_are_out_though_a_worker_is_lost_while_slices_move() -> None:
    repeated = [report(n, 13.0 + n / 8, replayed=True) for n in (9, 10, 11, 12)]
    found = measure(course("progressive", 9.5, 20.0), [*every_second(0, 12), *repeated, *every_second(16, 30)])
    assert (found.catchup_s, found.replayed_rows) == (0.5, 40)


def test_going_back_twice_counts_twice() -> None:
    twice = [report(n, at, replayed=True) for n, at in ((8, 13.0), (9, 14.0), (8, 17.0), (9, 18.0))]
    reports = [*every_second(0, 9), *twice, report(10, 19.0), report(11, 20.0)]
    found = measure(course("restart", 9.5, 12.0, last=10, swap=9.5, init=11.5), reports)
    assert (found.replayed_rows, found.recovery_s, found.catchup_s) == (50, 9.5, 9.5)


def test_a_restart_with_nothing_to_repeat_has_recovered_at_once() -> None:
    reports = [*every_second(0, 9), report(10, 15.0), report(11, 16.0)]
    found = measure(course("restart", 9.0, 12.0, last=9, swap=9.0, init=11.5), reports)
    assert (found.replayed_rows, found.recovery_s, found.catchup_s, found.restore_s) == (0, 0.0, 0.0, 6.0)


def test_where_nobody_took_note_an_app_that_stopped_is_taken_to_have_been_at_work() -> None:
    """The epoch's report is that of its second attempt; that there was a first is not counted, as nobody saw it."""
    reports = [*every_second(0, 9), report(10, 15.0), report(11, 16.0)]
    found = measure(course("restart", 9.5, 12.0, swap=9.0, init=11.5), reports)
    assert (found.catchup_s, found.replayed_rows) == (5.5, 0)


# Written and read.


def test_measures_survive_as_json_to_the_millisecond() -> None:
    found = MigrationMeasures(1.23456, 0.0, 2.0004, None, None, 3.9996, 12)
    fields = json.loads(json.dumps(found.to_json()))
    assert fields == {
        "restore_s": 1.235,
        "drain_s": 0.0,
        "rebalance_s": 2.0,
        "catchup_s": None,
        "recovery_s": None,
        "stabilise_s": 4.0,
        "replayed_rows": 12,
    }
    again = codec.convert(MigrationMeasures, fields)
    assert again.to_json() == fields
    assert isinstance(again.replayed_rows, int)
