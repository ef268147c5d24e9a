"""The dataflows that migrations are measured on: their sizes are the paper's; graphs that make no sense are refused."""

from itertools import pairwise

import pytest

from springtide.dataflow.errors import BadGraph
from springtide.workloads.dataflows import DATAFLOWS, GRID, SOURCE, Dataflow, Sizes, Task, linear

TABLE_1 = {
    "linear": Sizes(5, 5, 3, 2, 5),
    "diamond": Sizes(5, 8, 4, 2, 8),
    "star": Sizes(5, 8, 4, 2, 8),
    "grid": Sizes(15, 21, 11, 6, 21),
    "traffic": Sizes(11, 13, 7, 4, 13),
}
"""As printed: tasks, instances, machines of 2, 4 and 1 slots."""


def test_sizes_are_those_of_table_1() -> None:
    assert {name: dataflow.sizes() for name, dataflow in DATAFLOWS.items()} == TABLE_1


@pytest.mark.parametrize(
    ("name", "longest", "busiest", "at_sink"),
    [("linear", 5, 8, 8), ("diamond", 2, 32, 32), ("star", 3, 16, 32), ("grid", 8, 16, 32), ("traffic", 7, 16, 32)],
)
def test_rates_and_critical_paths(name: str, longest: int, busiest: float, at_sink: float) -> None:
    dataflow = DATAFLOWS[name]
    assert len(dataflow.critical_path) == longest
    assert max(dataflow.input_events_s(task.name) for task in dataflow.tasks) == busiest
    assert dataflow.copies_at_sink * 8.0 == at_sink


def test_the_critical_path_is_a_way_through() -> None:
    for dataflow in DATAFLOWS.values():
        path = (SOURCE, *dataflow.critical_path)
        assert all(after in dataflow.consumers[before] for before, after in pairwise(path))
        assert path[-1] in dataflow.last


def test_more_events_take_more_instances() -> None:
    assert [GRID.instances("time-series", events_s) for events_s in (4.0, 8.0, 8.1, 16.0)] == [1, 2, 3, 4]


def test_a_row_of_any_length() -> None:
    fifty = linear(50)
    assert fifty.sizes() == Sizes(50, 50, 25, 13, 50)
    assert fifty.critical_path == tuple(task.name for task in fifty.tasks)
    assert (fifty.name, linear(5)) == ("linear-50", DATAFLOWS["linear"])


@pytest.mark.parametrize(
    ("tasks", "wrong"),
    [
        ((), "at least one task"),
        ((Task("a"), Task("a")), "a name of its own"),
        ((Task(SOURCE),), "a name of its own"),
        ((Task("a", ("b",)), Task("b")), r"'a': expected parents among \['source'\]"),
        ((Task("a", ()),), "expected parents among"),
        ((Task("a", (SOURCE, SOURCE)),), "each parent once"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(tasks: tuple[Task, ...], wrong: str) -> None:
    with pytest.raises(BadGraph, match=wrong):
        Dataflow("odd", tasks)
