"""Every equation of Stream Economics, with numbers worked out by hand."""

import numpy as np
import pytest
from streams import alone, steady, taxi

from springtide.policies.shedding.accuracy import local_accuracy, measured
from springtide.policies.shedding.arrays import Floats, floats, ints
from springtide.policies.shedding.cpu import (
    UNKNOWN,
    expected_cpu,
    full_costs,
    full_cpu,
    minimum_obtained_cpu,
    most_accurate,
    obtained_accuracy,
    required_cpu,
    slack,
)
from springtide.policies.shedding.graph import Query, Task, TaskGraph
from springtide.policies.shedding.model import Machine, Model, TaskInstance
from springtide.policies.shedding.probabilities import admit_probabilities, desired_of_tasks, keep_probabilities

FORK = TaskGraph(
    (
        Task("low", ("mid",), ("low",)),
        Task("src"),
        Task("mid", ("src",)),
        Task("high", ("mid",), ("high",)),
        Task("other", (), ("other",)),
    ),
    (Query("low", 1, 0.8), Query("high", 5, 0.3), Query("other", 3, 0.5)),
)
"""src feeds mid, that both low and high; tasks in no order."""


def near(values: object) -> object:
    return pytest.approx(values, abs=1e-12)


def by_name(graph: TaskGraph, values: Floats) -> dict[str, float]:
    return dict(zip(graph.names, values.tolist(), strict=True))


def test_equations_1_and_2_a_task_has_the_highest_of_its_queries() -> None:
    assert by_name(FORK, FORK.priorities) == {"low": 1, "src": 5, "mid": 5, "high": 5, "other": 3}
    assert by_name(FORK, FORK.minima) == {"low": 0.8, "src": 0.8, "mid": 0.8, "high": 0.3, "other": 0.5}


def test_equation_5_a_task_is_as_accurate_as_its_most_accurate_query() -> None:
    found = FORK.pairs.highest(floats([0.9, 0.4, 0.7]))
    assert by_name(FORK, found) == {"low": 0.9, "src": 0.9, "mid": 0.9, "high": 0.4, "other": 0.7}


def test_a_turn_has_all_tasks_that_feed_a_query_of_its_priority() -> None:
    turns = [{FORK.names[task] for task in turn.tasks} for turn in FORK.turns]
    assert turns == [{"src", "mid", "high"}, {"other"}, {"src", "mid", "low"}]


def chain(src: float, *sink: float) -> Model:
    """A source that is offered 100 rows a second and took some; the instances of a sink, and their rates."""
    graph = TaskGraph((Task("src"), Task("sink", ("src",), ("q",))), (Query("q"),))
    instances = [TaskInstance("sink", n, "a", rate, 0.1 * (n + 1)) for n, rate in enumerate(sink)]
    rates = ({("src", "sink"): src}, {"src": 100.0})
    return Model(graph, (Machine("a", 4.0),), (TaskInstance("src", 0, "a", src, 0.2), *instances), *rates)


def test_equation_4_is_about_the_slowest_instance() -> None:
    # 60 of 100 rows; these are for two instances, 30 for each, and the slower one took 20.
    assert local_accuracy(chain(60, 40, 20)).tolist() == near([0.6, 20 / 30])


def test_equation_4_with_nothing_to_take_is_all() -> None:
    assert local_accuracy(chain(0, 0)).tolist() == near([0.0, 1.0])


def test_equation_3_multiplies_along_the_way() -> None:
    assert measured(chain(60, 40, 20)).current.tolist() == near([0.6, 0.6 * 20 / 30])
    assert measured(chain(0, 0)).current.tolist() == [0.0, 0.0]


def test_equation_3_never_exceeds_one() -> None:
    # A backlog is worked off: 150 rows a second where 100 are offered.
    found = measured(chain(150, 150))
    assert found.current.tolist() == [1.0, 1.0]
    assert found.share.tolist() == near([1.5, 1.5]), "its CPU is for half as many rows again"


def union(left: float, right: float, taken: float) -> Model:
    graph = TaskGraph((Task("l"), Task("r"), Task("u", ("l", "r"), ("q",))), (Query("q"),))
    rates = {"l": left, "r": right, "u": taken}
    instances = tuple(TaskInstance(name, 0, "a", rate, 0.1) for name, rate in rates.items())
    out = {("l", "u"): left, ("r", "u"): right}
    return Model(graph, (Machine("a", 1.0),), instances, out, {"l": 100.0, "r": 100.0})


def test_equation_3_takes_the_least_accurate_upstream() -> None:
    # 50 of 100 and 100 of 100; all 150 taken in: nothing is lost locally, 0.5 is guaranteed.
    found = measured(union(50, 100, 150))
    assert found.current.tolist() == near([0.5, 1.0, 0.5])
    assert found.share.tolist() == near([0.5, 1.0, 0.75]), "150 of the 200 rows of full accuracy are worked on"


def test_equation_6_is_about_the_slowest_instance() -> None:
    assert expected_cpu(chain(60, 40, 20)).tolist() == [0.2, 0.2]
    assert expected_cpu(chain(60, 20, 40)).tolist() == [0.2, 0.1]
    assert expected_cpu(chain(60, 30, 30)).tolist() == [0.2, 0.2], "among equals the most"


def test_equation_7_is_an_even_share() -> None:
    assert minimum_obtained_cpu(floats([1.2, 0.9]), ints([3, 0])).tolist() == near([0.4, 0.9])


@pytest.mark.parametrize(
    ("accuracy", "cpu", "current", "cores"),
    [
        (0.0, 0.5, 0.0, 0.0),  # no accuracy, nothing known: nothing
        (0.3, 0.5, 0.0, 1.0),  # some accuracy, nothing known: a full core
        (0.8, 0.2, 0.4, 0.4),  # twice the accuracy, twice the CPU
        (0.2, 0.2, 0.4, 0.1),
        (1.0, 0.6, 0.4, 1.0),  # 1.5 cores, but it is one thread
    ],
)
def test_equation_8(accuracy: float, cpu: float, current: float, cores: float) -> None:
    full = full_cpu(floats([cpu]), floats([current]))
    assert required_cpu(floats([accuracy]), full).tolist() == near([cores])


@pytest.mark.parametrize(
    ("given", "cpu", "current", "accuracy"),
    [
        (0.0, 0.5, 0.0, 0.0),  # nothing known, nothing given
        (0.1, 0.5, 0.0, 1.0),  # nothing known, something given: hope
        (0.0, 0.0, 0.7, 0.7),  # it needs nothing: as it is
        (0.1, 0.0, 0.7, 1.0),  # it needed nothing, something given: hope
        (0.3, 0.2, 0.4, 0.6),  # half as much CPU again
        (0.9, 0.2, 0.4, 1.0),  # 1.8, but all is all
    ],
)
def test_equation_11(given: float, cpu: float, current: float, accuracy: float) -> None:
    full = full_cpu(floats([cpu]), floats([current]))
    assert obtained_accuracy(floats([given]), full, floats([current])).tolist() == near([accuracy])


def test_one_core_is_good_for_a_part_of_a_costly_task() -> None:
    full, floor = floats([0.5, 1.0, 2.5, 2.5, UNKNOWN]), floats([0.0, 0.0, 0.0, 0.5, 0.5])
    assert most_accurate(full, floor).tolist() == [1.0, 1.0, 0.4, 0.2, 1.0]


def test_equations_12_and_13() -> None:
    # Three instances ask for 0.2, 0.3 and 0.6; 0.8 is available: (0.2 + 0.3 + 0.6) - 3 x 0.8 / 3 = 0.3.
    assert slack(floats([1.1, 0.0]), ints([3, 0]), floats([0.8, 0.5])).tolist() == near([0.3, 0.0])


def test_the_costs_of_full_accuracy_are_found_from_any_accuracy() -> None:
    costs = {"src1": 0.1, "src2": 0.2, "snk1": 0.5, "snk2": 0.9}
    at = {"src1": 0.8, "src2": 0.8, "snk1": 0.5, "snk2": 0.8}
    model = steady(taxi(), costs, {"src1": "a", "src2": "a", "snk1": "a", "snk2": "ab"}, {"a": 1, "b": 1}, accuracy=at)
    assert by_name(model.graph, full_costs(model, measured(model), ints([]))) == near(costs)
    assert by_name(model.graph, measured(model).current) == near(at)


def test_costs_are_found_where_a_stream_is_denser_for_another_query() -> None:
    tasks = (Task("l"), Task("r"), Task("both", ("l", "r"), ("q",)), Task("only", ("l",), ("p",)))
    graph = TaskGraph(tasks, (Query("q"), Query("p")))
    costs = {"l": 0.1, "r": 0.2, "both": 0.5, "only": 0.3}
    at = {"l": 0.9, "r": 0.5, "both": 0.5, "only": 0.9}
    model = steady(graph, costs, dict.fromkeys(costs, "a"), {"a": 2}, accuracy=at)
    assert by_name(graph, full_costs(model, measured(model), ints([]))) == near(costs)


def test_what_was_known_stands_in_for_what_is_not_measured() -> None:
    graph = alone(Query("q"), Query("r"))
    shed = steady(graph, {"q": 0.4, "r": 0.5}, {"q": "a", "r": "a"}, {"a": 1}, accuracy={"q": 0.0})
    assert full_costs(shed, measured(shed), ints([])).tolist() == [UNKNOWN, 0.5]
    at = {"q": 0.0}
    known = steady(
        graph, {"q": 0.4, "r": 0.5}, {"q": "a", "r": "a"}, {"a": 1}, accuracy=at, known_cpu={"q": 0.4, "r": 9.0}
    )
    assert full_costs(known, measured(known), ints([])).tolist() == [0.4, 0.5], "what is measured is better"
    assert full_costs(known, measured(known), ints([1])).tolist() == [0.4, 9.0], "but not while an instance warms up"


def test_line_2_of_algorithm_1_other_processes_keep_their_cpu() -> None:
    # 4 cores, 2.5 in use, 1.5 of that by tasks: one core is somebody else's.
    model = steady(alone(Query("q")), {"q": 0.75}, {"q": "aa"}, {"a": 4, "b": 2}, others={"a": 1.0, "b": 3.0})
    assert model.available.tolist() == [3.0, 0.0]


def test_equation_14_takes_the_most_of_what_comes_after() -> None:
    # low 0.4 and high 0.9: mid and src have to work on 0.9.
    found = desired_of_tasks(FORK, floats([0.4, 0.9, 0.7]))
    assert by_name(FORK, found) == {"low": 0.4, "high": 0.9, "mid": 0.9, "src": 0.9, "other": 0.7}


def test_equation_15_drops_as_early_as_possible() -> None:
    desired = desired_of_tasks(FORK, floats([0.4, 0.8, 0.7]))
    assert admit_probabilities(FORK, desired) == {"src": 0.8, "other": 0.7}
    assert keep_probabilities(FORK, desired) == {("src", "mid"): 1.0, ("mid", "high"): 1.0, ("mid", "low"): 0.5}


def test_nothing_goes_on_from_a_task_that_is_to_work_on_nothing() -> None:
    desired = desired_of_tasks(FORK, np.zeros(3))
    assert set(keep_probabilities(FORK, desired).values()) == {0.0}
