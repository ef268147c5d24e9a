"""Dataflows as apps, run task by task without Spark, against an oracle that walks every way through them."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from springtide import App, rates, sinks, sources
from springtide.connectors.sources import Generator
from springtide.testing import StepHarness
from springtide.workloads.dataflow_app import Work, build, occupancy
from springtide.workloads.dataflow_oracle import Expected, Faults, expected, faults, keys_of, miscounted, path_of, ways
from springtide.workloads.dataflows import DATAFLOWS, DIAMOND, GRID, LINEAR, SOURCE, STAR, TRAFFIC, Dataflow, linear

Row = dict[str, Any]
BORN = datetime(2024, 6, 1, tzinfo=UTC)
EVENTS = 60
KEYS = 7


def key_of(event: int) -> int:
    return event * event % KEYS


class ByHand:
    """A dataflow's app, whose tasks are fed by hand, epoch by epoch."""

    def __init__(self, dataflow: Dataflow, **options: Any) -> None:
        self.dataflow = dataflow
        app = build(dataflow, sink=sinks.memory(), **({"service_s": 0.0} | options))
        self.tasks = {task.name: StepHarness(app, task.name, Work.OUTPUT) for task in dataflow.tasks}

    def epoch(self, ids: Iterable[int], shuffle: Callable[[list[Row]], object] = lambda rows: None) -> list[Row]:
        """What the sink gets of an epoch; rows reach every task in whatever order."""
        blank = {"born": BORN, "path": 0, "seen": 0, "tally": 0}
        given = {SOURCE: [{"id": event, "key": key_of(event), **blank} for event in ids]}
        for task in self.dataflow.tasks:
            rows = [row for parent in task.parents for row in given[parent]]
            shuffle(rows)
            given[task.name] = self.tasks[task.name].epoch(rows)
        return [row for name in self.dataflow.last for row in given[name]]


def run(dataflow: Dataflow) -> list[Row]:
    """All events in four epochs, of which the second has none: the last one needs what both others have left."""
    app = ByHand(dataflow)
    return [row for ids in (range(15), (), range(15, 35), range(35, EVENTS)) for row in app.epoch(ids)]


def wanted(dataflow: Dataflow) -> Expected:
    return expected(dataflow, range(EVENTS), key_of)


@pytest.mark.parametrize("dataflow", [*DATAFLOWS.values(), linear(50)], ids=lambda d: d.name)
def test_every_dataflow_gives_what_walking_its_ways_gives(dataflow: Dataflow) -> None:
    rows = run(dataflow)
    assert len(rows) == EVENTS * dataflow.copies_at_sink
    assert faults(rows, wanted(dataflow)) == (0, 0)
    assert miscounted(rows, wanted(dataflow)) == 0
    assert all(row["key"] == key_of(row["id"]) and row["born"] == BORN for row in rows)


def test_rows_do_not_depend_on_the_order_in_which_they_come_or_on_parallelism() -> None:
    app, rows = ByHand(STAR), []
    for ids, instances in ((range(25), 3), (range(25, EVENTS), 2)):
        for harness in app.tasks.values():
            harness.instances = instances
        rows += app.epoch(ids, random.Random(instances).shuffle)
    assert sorted(map(str, rows)) == sorted(map(str, run(STAR)))


def test_counts_by_hand() -> None:
    rows = ByHand(STAR).epoch([0, KEYS])  # Two events of key 0.
    assert {row["key"] for row in rows} == {0}
    of_first = [row for row in rows if row["id"] == 0]
    assert sorted(row["seen"] for row in of_first) == [1, 1, 2, 2]
    assert sorted(row["seen"] for row in rows) == [1, 1, 2, 2, 3, 3, 4, 4]
    # 1 or 2 at the spoke that leads in; then the same count at the hub and at either spoke that leads out.
    assert sorted(row["tally"] for row in of_first) == [1 + 1 + 1, 1 + 1 + 1, 1 + 2 + 2, 1 + 2 + 2]
    assert sum(row["tally"] for row in rows) == expected(STAR, [0, KEYS], key_of).tally[0] == 52


def test_ways_differ_in_their_paths() -> None:
    for dataflow in (*DATAFLOWS.values(), linear(50)):
        found = list(ways(dataflow))
        assert len(set(found)) == len(found) == dataflow.copies_at_sink
        parts = {way[:end] for way in found for end in range(1, len(way) + 1)}
        assert len({path_of(dataflow, part) for part in parts}) == len(parts)
    assert path_of(LINEAR, ("task-1",)) == 1
    assert set(ways(DIAMOND)) == {(f"side-{n}", "meet") for n in (1, 2, 3, 4)}


def test_rows_that_are_lost_doubled_or_strange_are_told_apart() -> None:
    rows, right = run(GRID), wanted(GRID)
    assert faults(rows[:-3], right) == Faults(lost=3, duplicated=0)
    assert faults([*rows, rows[0], rows[0]], right) == Faults(lost=0, duplicated=2)
    assert faults([*rows[1:], rows[5], rows[0] | {"path": 12345}], right) == Faults(lost=1, duplicated=2)
    assert faults([], right) == Faults(lost=EVENTS * 4, duplicated=0)
    assert miscounted([rows[0] | {"path": 12345}, *rows[1:]], right) == 2


@pytest.mark.parametrize("dataflow", [STAR, TRAFFIC], ids=lambda d: d.name)
def test_a_state_that_forgets_or_sees_twice_shows_though_all_rows_are_right(dataflow: Dataflow) -> None:
    for task in dataflow.tasks:
        forgets, twice = ByHand(dataflow), ByHand(dataflow)
        first = forgets.epoch(range(25))
        twice.epoch(range(25))
        fresh = ByHand(dataflow).tasks[task.name]
        forgets.tasks[task.name] = fresh
        assert _off(dataflow, [*first, *forgets.epoch(range(25, EVENTS))]), f"{task.name} has lost its state"
        blank = {"born": BORN, "path": 0, "seen": 0, "tally": 0}
        twice.tasks[task.name].epoch([{"id": 24, "key": key_of(24), **blank}])
        assert _off(dataflow, [*first, *twice.epoch(range(25, EVENTS))]), f"{task.name} has seen an event twice"


def _off(dataflow: Dataflow, rows: list[Row]) -> bool:
    assert faults(rows, wanted(dataflow)) == (0, 0)
    return miscounted(rows, wanted(dataflow)) > 0


def test_a_task_takes_its_time_for_each_event_once_a_batch() -> None:
    slept: list[float] = []
    app = App("one")
    work = Work(1, 0.02, slept.append)
    events = app.source(SOURCE, sources.generator(1)).key_by("key")
    events.reduce_batches("task", work, state=Work.STATE, output=Work.OUTPUT).sink("sink", sinks.memory())
    harness = StepHarness(app, "task", Work.OUTPUT)
    blank = {"born": BORN, "path": 0, "seen": 0, "tally": 0}
    harness.epoch([{"id": event, "key": key_of(event), **blank} for event in range(9)])
    harness.epoch([])
    assert slept == pytest.approx([9 * 0.02])


def test_service_times_by_task() -> None:
    graph = build(LINEAR, sink=sinks.memory(), service_s={"task-2": 0.5}).graph()
    services = {name: graph[name].operation.reducer.service_s for name in ("task-1", "task-2")}  # type: ignore[union-attr]
    assert services == {"task-1": 0.005, "task-2": 0.5}
    with pytest.raises(ValueError, match=r"'linear' has no tasks \['task-9'\]: expected some of \['task-1'"):
        build(LINEAR, service_s={"task-9": 0.1})
    with pytest.raises(ValueError, match="task 'task-1' needs a finite service time of 0 or more seconds, got -1"):
        build(LINEAR, service_s=-1)


@pytest.mark.parametrize("dataflow", DATAFLOWS.values(), ids=lambda d: d.name)
def test_all_hold_the_default_and_none_the_papers_service_time(dataflow: Dataflow) -> None:
    share = occupancy(dataflow, 0.1)
    assert share == pytest.approx(0.8 * len(dataflow.critical_path))
    assert share > 1
    assert occupancy(dataflow) == pytest.approx(share / 20)
    assert occupancy(dataflow, instances=1) < 0.5


def test_occupancy_goes_by_the_slowest_way_and_the_instances() -> None:
    assert occupancy(DIAMOND, 0.01, instances=1) == pytest.approx((8 + 32) * 0.01)
    assert occupancy(DIAMOND, 0.01, instances=2, events_s=4.0) == pytest.approx((8 + 32) * 0.01 / 4)
    only_one = dict.fromkeys(("in-1", "hub", "out-1", "out-2"), 0.0) | {"in-2": 0.01}
    assert occupancy(STAR, only_one) == pytest.approx(0.08)


def test_the_source_is_a_generator_at_any_rate() -> None:
    def source(**options: Any) -> Generator:
        spec = build(LINEAR, **options).graph()[SOURCE].spec  # type: ignore[union-attr]
        assert isinstance(spec, Generator)
        return spec

    assert source().spec.rate == rates.constant(8.0)
    assert source().spec.keys == 64
    wave = rates.sine(8, 4, 60)
    assert source(rate=wave, keys=5).spec.rate == wave
    assert set(keys_of(source(keys=5), 200).values()) == set(range(5))
