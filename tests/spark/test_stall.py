"""Jobs and epochs that do not go on are cancelled, tried again, and given up with an error."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from chaos_kit import manifest_path
from spark_kit import bag, parquet_epochs
from waiting import wait_until

from springtide import App, agg, sinks
from springtide.engine.executors import stall
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.executors.stall import Stalled
from springtide.engine.lifecycle import query_supervisor as supervisor
from springtide.metrics.report import EpochReport
from springtide.waits import WaitedTooLong

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RunApp = Callable[..., list[EpochReport]]
SCHEMA = pa.schema([("k", pa.string())])
EPOCHS = [[{"k": "a"}, {"k": "b"}, {"k": "a"}]]
LONGEST_S = 120.0
"""How long something may hang if nobody ends it: the test fails then, and does not hang itself."""


def hanging(marks: Path, times: int) -> Callable[[pa.Table], pa.Table]:
    """A function on workers that does not come back, as often as there are marks to take."""
    marks.mkdir()
    for number in range(times):
        (marks / str(number)).touch()

    def hang(table: pa.Table) -> pa.Table:
        for mark in marks.iterdir():
            mark.unlink()
            time.sleep(LONGEST_S)
        return table

    return hang


def app_with(hang: Callable[[pa.Table], pa.Table], directory: Path) -> tuple[App, sinks.Memory]:
    app, out = App("stalls"), sinks.memory()
    rows = app.source("rows", parquet_epochs(directory, EPOCHS, SCHEMA, "k STRING"))
    rows.map_batches("slow", hang, SCHEMA).key_by("k").aggregate("count", c=agg.count()).sink("out", out)
    return app, out


def test_a_job_that_stalls_is_cancelled_and_tried_again(
    run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "BUSY", 1)
    app, out = app_with(hanging(tmp_path / "marks", 1), tmp_path / "in")
    reports = run_app(app, stall_s=8)  # On a busy machine, too, a sound attempt begins or ends a task sooner.
    assert [report.retries for report in reports] == [1]
    assert bag(out.rows()) == bag([{"k": "a", "c": 2}, {"k": "b", "c": 1}])


def test_a_job_that_stalls_again_fails_the_app(run_app: RunApp, tmp_path: Path) -> None:
    app, _ = app_with(hanging(tmp_path / "marks", 9), tmp_path / "in")
    with pytest.raises(Stalled, match=r"step 'count' failed while running its job: no task .* showed job") as failed:
        run_app(app, stall_s=1.5, checkpoint=str(tmp_path / "checkpoint"))
    assert "stall_s" in failed.value.hint
    assert not manifest_path(tmp_path / "checkpoint", 0).exists()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Lets the driver's own function, which hangs, go on."""
    event = threading.Event()
    yield event
    event.set()


def test_an_epoch_that_waits_for_nothing_ends_the_app(
    run_app: RunApp, released: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job runs that could be cancelled: the app fails all the same, and the epoch never becomes true."""
    monkeypatch.setattr(supervisor, "END_S", 1.0)
    ended, building = threading.Event(), [0]

    def hangs(frame: "DataFrame") -> "DataFrame":
        building[0] += 1
        if building[0] > 1:  # The first time, the app is only checked.
            released.wait(LONGEST_S)
            ended.set()
        return frame

    app = App("stuck")
    rows = app.source("rows", parquet_epochs(tmp_path / "in", EPOCHS, SCHEMA, "k STRING"))
    rows.transform("hangs", hangs).sink("out", sinks.noop())
    with pytest.raises(WaitedTooLong, match="a sign of epoch 0"):
        run_app(app, stall_s=0.3, checkpoint=str(tmp_path / "checkpoint"))
    assert not ended.is_set()
    released.set()
    wait_until("the function that hung to end", ended.is_set, 30)
    wait_until("its query to end", lambda: not _queries_named("stuck"), 30)
    assert not manifest_path(tmp_path / "checkpoint", 0).exists()


def _queries_named(name: str) -> list[Any]:
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    return [] if active is None else [query for query in active.streams.active if query.name == name]


def test_a_watch_sees_the_jobs_of_its_block_alone(spark: "SparkSession", tmp_path: Path) -> None:
    """By what Spark shows: the job, its stage, and how many tasks run."""
    watch = JobWatch(spark.sparkContext, 600.0)
    mark = tmp_path / "go-on"

    def task(batches: Any) -> Any:
        deadline = time.monotonic() + LONGEST_S
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        yield from batches

    def run() -> None:
        with watch.job("count"):
            spark.range(0, 3, 1, 3).mapInArrow(task, "id BIGINT").collect()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        wait_until("its block", lambda: bool(watch._blocks), 30)
        (tag,) = watch._blocks
        wait_until("its tasks to run", lambda: watch.sight(tag).running == 2, 30)
        seen = watch.sight(tag)
        assert len(seen.jobs) == 1
        assert [(stage.tasks, stage.done) for stage in seen.stages] == [(3, 0)]
        assert watch.sight("other") == type(seen)()
    finally:
        mark.touch()
        thread.join(60)
    assert not thread.is_alive()
    assert not watch._blocks
