"""What the runner promises of an epoch, whatever computes it: computed, then true, then published, then reported."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from springtide import App, agg, sources
from springtide.blocks.collect import Collector
from springtide.blocks.errors import LineageBroken
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore
from springtide.dataflow.errors import StepFailed
from springtide.engine.durability.history import History
from springtide.engine.durability.interval import Interval
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.epoch.compute import EpochComputation
from springtide.engine.epoch.computed import Computed
from springtide.engine.epoch.inputs import Inputs
from springtide.engine.epoch.publisher import Publisher
from springtide.engine.epoch.reporter import Reporter
from springtide.engine.epoch.runner import EpochRunner, Stopped
from springtide.engine.epoch.source_progress import Progress
from springtide.engine.wire.retry_signals import Replan
from springtide.ids import Epoch, PlanVersion, WorkerId
from springtide.metrics.report import EpochReport

BATCH = cast(Any, SimpleNamespace(sparkSession=None))
OFFSET = '{"row": 1, "start_us": 0}'
"""Of every epoch: only the first one has input."""


class Sink:
    """Notes what it gets, and whether that is true by then; fails if it is told to."""

    def __init__(self, name: str, driver: "Driver") -> None:
        self.name, self.driver = name, driver
        self.fails = False

    def publish(self, output: Any) -> None:
        head = self.driver.history.head
        assert head is not None
        assert head.epoch == output.epoch, "an epoch is published once it is true"
        if self.fails:
            raise OSError("disk full")
        self.driver.events.append(f"{self.name} {output.epoch}")


class Pool:
    """Workers that are always there; a plan for each attempt."""

    durable = True
    storage = None

    def __init__(self) -> None:
        self.plans = 1
        self.watch = SimpleNamespace(epoch=self._around, job=self._around, stuck=None)

    @property
    def plan(self) -> Any:
        return SimpleNamespace(version=PlanVersion(self.plans))

    @contextmanager
    def _around(self, *what: object) -> Iterator[None]:
        yield

    def boundary(self, head: Manifest | None) -> Any:
        return self.plan

    def replan(self, error: Exception, head: Manifest | None) -> Any:
        if not isinstance(error, Replan):
            raise error
        self.plans += 1
        return self.plan

    def due(self, here: object) -> bool:
        return False

    @property
    def state(self) -> Any:
        return SimpleNamespace(committed=lambda *what: (), pinned=set)

    def departed(self) -> tuple[WorkerId, ...]:
        return ()


class Computing(EpochComputation):
    """Epochs of nothing, that fail as often as the driver's test wants."""

    def __init__(self, bound: BoundGraph, inputs: Inputs, driver: "Driver") -> None:
        super().__init__("app", bound, inputs, driver.history, cast(Any, driver.pool))
        self.driver = driver

    def __call__(self, frames: object, epoch: Epoch, parent: Manifest | None, plan: Any, *rest: object) -> Computed:
        self.driver.events.append(f"compute {epoch} under plan {plan.version}")
        self.driver.meanwhile()
        if self.driver.failing:
            raise self.driver.failing.pop(0)
        before = "" if parent is None else parent.id
        return Computed(Manifest("app", epoch, before, plan.version, 1, offsets=(OFFSET,)), parent)


class Driver:
    """A runner on a checkpoint of its own or of an earlier driver."""

    def __init__(self, place: Path) -> None:
        self.events: list[str] = []
        self.reports: list[EpochReport] = []
        self.asked: list[tuple[int | None, bool]] = []
        """After which epochs the runner asked whether another one would close something, and whether afresh."""
        self.failing: list[Exception] = []
        """What the next attempts end with."""
        self.meanwhile: Callable[[], None] = lambda: None
        self.sinks = [Sink("left", self), Sink("right", self)]
        app = App("app")
        counted = app.source("rows", sources.generator(1)).key_by("key").aggregate("count", n=agg.count())
        for sink in self.sinks:
            counted.sink(sink.name, sink)
        graph = app.graph()
        store = LocalStore(place)
        self.history = History(store, Interval(1), lambda states, stored: None)
        self.history.__dict__["lineage"] = "this one"
        layout = SimpleNamespace(key=pa.schema([("key", pa.int64())]))
        bound = SimpleNamespace(
            graph=graph, schemas={"count": layout.key}, logics={"count": SimpleNamespace(layout=layout)}
        )
        inputs = SimpleNamespace(
            several=False,
            sheds=False,
            apart=None,
            split=lambda batch: {"rows": batch},
            counted=lambda batch: (batch, None),
        )
        self.pool = Pool()
        pool = cast(Any, self.pool)
        self.runner = EpochRunner(
            self.history,
            pool,
            Collector(self.history.log, store),
            Computing(cast(Any, bound), cast(Any, inputs), self),
            Publisher(cast(Any, bound), self.history, pool),
            Reporter("app", graph, Progress(graph), self._reported),
            cast(Any, SimpleNamespace(ask=self._ask)),
        )
        self.runner._prepared = True

    def _reported(self, report: EpochReport) -> None:
        self.events.append(f"report {report.epoch}")
        self.reports.append(report)

    def _ask(self, head: Manifest | None, *, afresh: bool) -> None:
        self.asked.append((None if head is None else head.epoch, afresh))

    def run(self, epoch: int) -> None:
        self.runner(BATCH, epoch)

    @property
    def true(self) -> int | None:
        """The last epoch that another driver would find."""
        head = self.history.log.head()
        return None if head is None else head.epoch


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


def test_an_epoch_is_computed_made_true_published_everywhere_and_reported(driver: Driver) -> None:
    driver.run(0)
    driver.run(1)
    each = ["compute {} under plan 1", "left {}", "right {}", "report {}"]
    assert driver.events == [event.format(epoch) for epoch in (0, 1) for event in each]
    assert [(r.epoch, r.replayed, r.retries) for r in driver.reports] == [(0, False, 0), (1, False, 0)]


def test_an_epoch_that_is_true_is_published_again_and_not_computed_again(driver: Driver, tmp_path: Path) -> None:
    driver.run(0)
    successor = Driver(tmp_path)
    successor.run(0)
    assert successor.events == ["left 0", "right 0", "report 0"]
    assert successor.reports[0].replayed
    successor.run(1)
    assert successor.events[3] == "compute 1 under plan 1"


def test_a_sink_that_fails_leaves_the_epoch_true_and_the_next_start_publishes_it(
    driver: Driver, tmp_path: Path
) -> None:
    driver.sinks[1].fails = True
    with pytest.raises(StepFailed, match="disk full") as failed:
        driver.run(0)
    assert failed.value.step == "right"
    assert "is committed, and not published everywhere" in "".join(failed.value.__notes__)
    assert driver.reports == []
    assert driver.true == 0
    successor = Driver(tmp_path)
    successor.run(0)
    assert successor.events == ["left 0", "right 0", "report 0"]


def test_an_attempt_that_workers_fail_is_made_again_under_another_plan(driver: Driver) -> None:
    driver.failing = [Replan("count", {}, {}), Replan("count", {}, {})]
    driver.run(0)
    assert driver.events[:3] == [f"compute 0 under plan {plan}" for plan in (1, 2, 3)]
    assert driver.events[3:] == ["left 0", "right 0", "report 0"]
    assert (driver.reports[0].retries, driver.reports[0].plan) == (2, 3)


def test_an_error_that_no_other_plan_helps_ends_the_epoch_and_nothing_of_it_is_true(driver: Driver) -> None:
    driver.failing = [StepFailed("count", "updating", "a bad row")]
    with pytest.raises(StepFailed, match="a bad row") as failed:
        driver.run(0)
    assert "is not committed" in "".join(failed.value.__notes__)
    assert driver.runner.failure is failed.value
    assert driver.events == ["compute 0 under plan 1"]
    assert driver.true is None


def test_epochs_come_in_order_without_a_gap(driver: Driver) -> None:
    driver.run(0)
    with pytest.raises(LineageBroken):
        driver.run(2)
    assert driver.true == 0


def test_after_the_stop_no_epoch_is_run(driver: Driver) -> None:
    driver.run(0)
    driver.runner.stop()
    with pytest.raises(Stopped):
        driver.run(1)
    assert driver.runner.refused
    assert driver.true == 0


def test_whether_something_is_left_to_close_is_asked_after_each_epoch_that_is_true(driver: Driver) -> None:
    driver.run(0)
    driver.run(1)
    driver.failing = [StepFailed("count", "updating", "a bad row")]
    with pytest.raises(StepFailed):
        driver.run(2)
    assert driver.asked == [(0, True), (1, False)], "the second epoch was without input"


@pytest.mark.parametrize(("begun", "asked"), [(False, [(0, True)]), (True, [])])
def test_it_is_asked_before_a_query_starts_unless_spark_begins_with_an_epoch(
    driver: Driver, tmp_path: Path, *, begun: bool, asked: list[tuple[int, bool]]
) -> None:
    driver.run(0)
    successor, logged = Driver(tmp_path), f"v1\n{{}}\n{OFFSET}".encode()
    successor.history.store.put("spark/offsets/0", logged)
    successor.history.store.put("spark/commits/0", b"")
    if begun:
        successor.history.store.put("spark/offsets/1", logged)
    assert not successor.runner.feed_spark()
    assert successor.asked == asked


def test_an_epoch_that_nobody_waits_for_any_more_does_not_become_true(driver: Driver) -> None:
    """It gave no sign of life, so the stop went on without it; then it comes to its end after all."""
    driver.pool.watch.stuck = TimeoutError("no sign of life")

    def stopped_meanwhile() -> None:
        with pytest.raises(TimeoutError):
            driver.runner.stop()

    driver.meanwhile = stopped_meanwhile
    with pytest.raises(Stopped):
        driver.run(0)
    assert driver.events == ["compute 0 under plan 1"]
    assert driver.true is None
