"""When jobs count as stalled, what becomes of them, and when an epoch is given up; without Spark."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark import SparkContext

from springtide.dataflow.errors import StepFailed
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.stall import BUSY, EPOCH, Patience, Sight, Stage, Stalled, checked_stall_s, stalled
from springtide.engine.wire.job_errors import explain
from springtide.errors import BadValue
from springtide.ids import Epoch

STALL_S = 10.0


def sight(running: int = 0, done: int = 0, failed: int = 0, job: int = 7) -> Sight:
    return Sight((job,), (Stage(3, 0, 4, running, done, failed),))


@pytest.mark.parametrize(("running", "limit_s"), [(0, STALL_S), (2, BUSY * STALL_S)])
def test_jobs_without_progress_stall(running: int, limit_s: float) -> None:
    patience = Patience(STALL_S, since_s=0.0)
    assert patience.look(sight(running), 5.0) is None
    assert patience.look(sight(running), 5.0 + limit_s) is None
    assert patience.look(sight(running), 5.1 + limit_s) == pytest.approx(limit_s + 0.1)


@pytest.mark.parametrize("after", [sight(1, 1), sight(2), sight(1, 0, 1), sight(1, job=8), Sight((7,))])
def test_whatever_changes_is_progress(after: Sight) -> None:
    """A task that begins, ends or fails, another stage, another job."""
    patience = Patience(STALL_S, since_s=0.0)
    now_s = 0.0
    for number in range(40):
        now_s += STALL_S
        assert patience.look(after if number % 2 else sight(1), now_s) is None


def test_where_no_job_runs_none_stalls() -> None:
    patience = Patience(STALL_S, since_s=0.0)
    assert [patience.look(Sight(), 1000.0 * n) for n in range(5)] == [None] * 5


def test_the_error_names_the_step_and_what_spark_showed() -> None:
    idle, busy = (stalled("count", "running its job", 12.0, sight(running)) for running in (0, 2))
    assert isinstance(idle, StepFailed)
    assert "step 'count' failed while running its job: no task began or ended in 12 s" in str(idle)
    assert "job 7; stage 3: 0 of 4 tasks done, 0 running, 0 failed" in str(idle)
    assert "free executors" in idle.hint
    assert "wait for" in busy.hint
    assert explain(idle, "other") is idle


def test_a_time_that_is_none_is_refused() -> None:
    assert checked_stall_s(2.5) == 2.5
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(BadValue, match="stall_s"):
            checked_stall_s(wrong)


class Context:
    """Notes tags and what is cancelled."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        self.addJobTag, self.removeJobTag = self.tags.append, self.tags.remove
        self.cancelJobsWithTag = self.cancelled.append


class Watched(JobWatch):
    """A watch whose clock and sight a test sets."""

    def __init__(self) -> None:
        self.fake, self.now_s, self.shown = Context(), 0.0, Sight()
        super().__init__(cast(SparkContext, self.fake), STALL_S, lambda: self.now_s)

    def sight(self, tag: str) -> Sight:
        assert tag in self.fake.tags
        return self.shown

    def pass_s(self, seconds: float) -> None:
        self.look()
        self.now_s += seconds
        self.look()


def stalling(watch: Watched, after: Callable[[], Any], running: int = 0) -> None:
    with watch.job("count"):
        watch.shown = sight(running)
        watch.pass_s(STALL_S + 1)
        after()


def test_jobs_that_stall_are_cancelled_and_the_error_says_so() -> None:
    watch = Watched()

    def fails() -> None:
        assert len(watch.fake.cancelled) == 1
        raise RuntimeError("job 7 was cancelled")

    with pytest.raises(Stalled, match="step 'count'") as failed:
        stalling(watch, fails)
    assert isinstance(failed.value.__cause__, RuntimeError)
    assert watch.fake.tags == []


def test_jobs_that_end_well_in_the_last_moment_are_no_error() -> None:
    stalling(Watched(), lambda: None)


def test_other_errors_stay_as_they_are() -> None:
    watch = Watched()

    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        stalling(watch, fails, running=1)
    assert watch.fake.cancelled == []


def test_an_epoch_without_a_sign_is_given_up_once() -> None:
    watch, told = Watched(), []
    watch.on_stuck = lambda: told.append(watch.stuck)
    with watch.epoch(Epoch(5)), watch.job("out", "publishing epoch 5"):
        watch.pass_s(EPOCH * STALL_S - 1)
        assert watch.stuck is None
        watch.pass_s(2)
        watch.pass_s(100)
    assert told == [watch.stuck]
    assert "a sign of epoch 5" in str(watch.stuck)
    assert "step 'out' is publishing epoch 5" in str(watch.stuck)


def test_an_epoch_that_goes_on_is_left_alone() -> None:
    """A job that begins or ends, a task that ends: each is a sign. Between epochs there is nothing to wait for."""
    watch = Watched()
    with watch.epoch(Epoch(5)):
        for done in range(9):
            with watch.job("count"):
                watch.pass_s(EPOCH * STALL_S - 1)
                watch.shown = sight(1, done % 4)
                watch.look()
            watch.pass_s(EPOCH * STALL_S - 1)
    watch.pass_s(1000 * STALL_S)
    assert watch.stuck is None
