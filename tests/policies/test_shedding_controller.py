"""Decisions of the controller, worked out by hand."""

from dataclasses import replace

import pytest
from streams import alone, steady, taxi

from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import BadModel, Query, Task, TaskGraph
from springtide.policies.shedding.model import Machine, Model, TaskInstance

ON_A = {"src1": "a", "src2": "a", "snk1": "a", "snk2": "a"}


def near(values: object) -> object:
    return pytest.approx(values, abs=1e-9)


def test_nothing_is_shed_if_all_have_room() -> None:
    decision = decide(steady(taxi(), dict.fromkeys(ON_A, 0.25), ON_A, {"a": 1}))
    assert not decision.shed
    assert decision.accuracy == {"snk1": 1.0, "snk2": 1.0}
    assert set(decision.keep.values()) | set(decision.admit.values()) == {1.0}
    assert not decision.moves
    assert decision.reason == "nothing is shed: every query has all the CPU that it needs"


def test_queries_of_one_priority_share_evenly_above_their_minima() -> None:
    # Minima: 0.2 x 0.5 and 0.4 x 0.5 = 0.3 of 0.6 cores. 0.3 are left, 0.15 for each: 0.3 more accuracy for both.
    graph = alone(Query("p", 0, 0.2), Query("q", 0, 0.4))
    decision = decide(steady(graph, {"p": 0.5, "q": 0.5}, {"p": "a", "q": "a"}, {"a": 0.6}))
    assert decision.accuracy == near({"p": 0.5, "q": 0.7})
    assert decision.reasons == (
        "p keeps 50 % (minimum 20 %): a has 0.60 cores for all its tasks, and p would take 0.50 an instance",
        "q keeps 70 % (minimum 40 %): a has 0.60 cores for all its tasks, and q would take 0.50 an instance",
    )


def test_algorithm_3_what_a_small_task_leaves_goes_to_the_others() -> None:
    # 0.7 for three: 0.2333 each. small takes 0.1, then 0.3 each: 0.3 / 0.4 and 0.3 / 0.6.
    graph = alone(Query("big"), Query("small"), Query("mid"))
    costs = {"big": 0.6, "small": 0.1, "mid": 0.4}
    decision = decide(steady(graph, costs, dict.fromkeys(costs, "a"), {"a": 0.7}))
    assert decision.accuracy == near({"big": 0.5, "small": 1.0, "mid": 0.75})


def test_a_lower_priority_gives_way_down_to_its_minimum_first() -> None:
    graph = alone(Query("low", 1, 0.2), Query("high", 5, 0.4))
    costs, where = {"low": 0.5, "high": 0.5}, {"low": "a", "high": "a"}
    # 0.1 are low's minimum, 0.5 all that high wants.
    assert decide(steady(graph, costs, where, {"a": 0.8})).accuracy == near({"low": 0.6, "high": 1.0})
    assert decide(steady(graph, costs, where, {"a": 0.5})).accuracy == near({"low": 0.2, "high": 0.8})


def test_a_minimum_that_fits_nowhere_is_missed_by_the_lowest_priority() -> None:
    graph = alone(Query("low", 1, 0.8), Query("high", 5, 0.8))
    decision = decide(steady(graph, {"low": 0.5, "high": 0.5}, {"low": "a", "high": "a"}, {"a": 0.5}))
    assert decision.accuracy == near({"low": 0.2, "high": 0.8})
    assert decision.below_minimum == ("low",)
    assert not decision.moves
    told = "there is room for 20 % of low, less than its minimum of 80 %: a has 0.50 cores"
    assert decision.reasons[0].startswith(told)


def test_what_even_shares_leave_unused_goes_to_the_query() -> None:
    # A chain of 0.1 and 0.9 cores on 0.5: Algorithm 3 alone gives the source 0.1 and the sink 0.4, for 44 %.
    graph = TaskGraph((Task("src"), Task("sink", ("src",), ("q",))), (Query("q"),))
    decision = decide(steady(graph, {"src": 0.1, "sink": 0.9}, {"src": "a", "sink": "a"}, {"a": 0.5}))
    assert decision.accuracy["q"] == pytest.approx(0.5, abs=2e-3)


def test_a_query_held_back_elsewhere_leaves_room_for_others() -> None:
    # a holds q back to 0.2; on b it needs 0.1 then, and r can have 0.4 of 0.5.
    graph = TaskGraph((Task("src"), Task("q", ("src",), ("q",)), Task("r", (), ("r",))), (Query("q"), Query("r")))
    model = steady(graph, {"src": 0.5, "q": 0.5, "r": 0.5}, {"src": "a", "q": "b", "r": "b"}, {"a": 0.1, "b": 0.5})
    assert decide(model).accuracy == pytest.approx({"q": 0.2, "r": 0.8}, abs=2e-3)


def test_a_query_that_rises_on_what_is_left_stops_where_a_task_before_it_does() -> None:
    # mid can do 0.5. On b, u and v are given 0.2 of 0.4 cores each; v can use 0.05 of that, and u could go to 0.7.
    tasks = (
        Task("mid"),
        Task("t", ("mid",), ("t",)),
        Task("u", ("mid",), ("u",)),
        Task("src"),
        Task("v", ("src",), ("v",)),
    )
    graph = TaskGraph(tasks, (Query("t"), Query("u"), Query("v")))
    costs = {"mid": 1.0, "t": 0.0, "u": 0.5, "src": 1.0, "v": 0.5}
    where = {"mid": "a", "t": "a", "u": "b", "src": "c", "v": "b"}
    decision = decide(steady(graph, costs, where, {"a": 0.5, "b": 0.4, "c": 0.1}))
    assert decision.accuracy == pytest.approx({"t": 0.5, "u": 0.5, "v": 0.1}, abs=3e-3)


def test_a_shared_task_gets_for_the_high_query_what_that_asks_for_and_no_more() -> None:
    # src costs 0.2 and feeds both. high can have (0.2 + 0.8) x 0.5 = 0.5. With all for src at once it would be less.
    tasks = (Task("src"), Task("high", ("src",), ("high",)), Task("low", ("src",), ("low",)))
    graph = TaskGraph(tasks, (Query("high", 5), Query("low", 1)))
    costs = {"src": 0.2, "high": 0.8, "low": 0.1}
    decision = decide(steady(graph, costs, dict.fromkeys(costs, "a"), {"a": 0.5}))
    assert decision.accuracy == pytest.approx({"high": 0.5, "low": 0.0}, abs=2e-3)


def test_both_results_of_one_task_are_equally_accurate() -> None:
    graph = TaskGraph((Task("t", (), ("high", "low")),), (Query("high", 5, 0.1), Query("low", 1, 0.3)))
    assert decide(steady(graph, {"t": 1.0}, {"t": "a"}, {"a": 0.6})).accuracy == near({"high": 0.6, "low": 0.6})


def test_instances_of_a_task_are_equally_accurate_though_one_has_less_room() -> None:
    decision = decide(steady(alone(Query("q", 0, 0.1)), {"q": 0.8}, {"q": "ab"}, {"a": 0.4, "b": 2}))
    assert decision.admit == near({"q": 0.5})


def test_streams_are_thinned_where_they_begin_and_again_where_a_query_wants_less() -> None:
    graph = taxi(priorities=(1, 5), minima=(0.25, 0.25))
    # 0.2 for both sources and 0.4 for snk2 leave 0.1: a quarter of snk1's 0.4.
    costs = {"src1": 0.1, "src2": 0.1, "snk1": 0.4, "snk2": 0.4}
    decision = decide(steady(graph, costs, ON_A, {"a": 0.7}))
    assert decision.accuracy == near({"snk1": 0.25, "snk2": 1.0})
    assert decision.admit == {"src1": 1.0, "src2": 1.0}
    assert decision.keep == near(
        {("src1", "snk1"): 0.25, ("src2", "snk1"): 0.25, ("src1", "snk2"): 1.0, ("src2", "snk2"): 1.0}
    )


def test_it_moves_only_if_minima_do_not_fit_and_then_the_cheapest_that_is_enough() -> None:
    costs = {"src1": 0.1, "src2": 0.1, "snk1": 0.8, "snk2": 0.9}
    # The minima take 0.12 for the sources, 0.32 and 0.54: 0.98.
    held = decide(steady(taxi(), costs, ON_A, {"a": 0.98, "b": 1}))
    assert not held.moves
    assert held.accuracy == near({"snk1": 0.4, "snk2": 0.6})
    # 0.2 too much. snk2 (0.54) can stay, as the others free 0.44; snk1 (0.32) cannot; then the sources can.
    moved = decide(steady(taxi(), costs, ON_A, {"a": 0.78, "b": 1}))
    assert [(move.instance, move.source, move.target) for move in moved.moves] == [(("snk1", 0), "a", "b")]
    assert (
        moved.reasons[0]
        == moved.moves[0].reason
        == (
            "instance 0 of snk1 moves from a to b: the minimum accuracies on a take 0.20 cores too much; "
            "this one, of priority 0, frees 0.32"
        )
    )
    # Without snk1 there is 0.12 beyond the minima, and each point of accuracy costs 0.1 + 0.1 + 0.9.
    assert moved.accuracy == pytest.approx({"snk1": 0.4, "snk2": 0.6 + 0.12 / 1.1}, abs=2e-3)


def test_no_move_to_a_machine_that_could_not_hold_its_minima_then() -> None:
    graph = alone(Query("p", 0, 0.6), Query("q", 0, 0.6), Query("r", 0, 0.9))
    costs, where = {"p": 1.0, "q": 1.0, "r": 1.0}, {"p": "a", "q": "a", "r": "b"}
    decision = decide(steady(graph, costs, where, {"a": 1, "b": 1}))
    assert not decision.moves
    assert decision.accuracy == near({"p": 0.5, "q": 0.5, "r": 1.0})
    assert decision.below_minimum == ("p", "q")
    roomy = decide(steady(graph, costs, where, {"a": 1, "b": 1, "c": 0.6, "d": 0.5}))
    assert [move.target for move in roomy.moves] == ["c"]


def test_what_cannot_move_stays() -> None:
    tasks = (Task("p", (), ("p",), movable=False), Task("q", (), ("q",)))
    graph = TaskGraph(tasks, (Query("p", 0, 0.3), Query("q", 1, 0.8)))
    decision = decide(steady(graph, {"p": 1.0, "q": 1.0}, {"p": "a", "q": "a"}, {"a": 1, "b": 1}))
    assert [move.instance for move in decision.moves] == [("q", 0)]


def test_beside_an_instance_that_warms_up_all_run_at_their_minimum_and_nobody_is_moved() -> None:
    graph = alone(Query("new", 0, 0.5), Query("old", 9, 0.7), Query("far", 0, 0.1))
    where = {"new": "a", "old": "a", "far": "b"}
    model = steady(graph, dict.fromkeys(where, 0.4), where, {"a": 1, "b": 1})
    assert decide(model).accuracy == {"new": 1.0, "old": 1.0, "far": 1.0}
    warming = decide(model, {("new", 0)})
    assert warming.accuracy == {"new": 0.5, "old": 0.7, "far": 1.0}
    assert warming.reasons[1] == "old keeps 70 % (minimum 70 %): an instance warms up on a worker of old"
    tight = steady(graph, dict.fromkeys(where, 0.4), where, {"a": 0.3, "b": 1})
    assert decide(tight).moves
    assert not decide(tight, {("new", 0)}).moves


def test_the_target_of_a_move_warms_up_at_once() -> None:
    graph = alone(Query("p", 0, 0.6), Query("q", 5, 0.6), Query("r", 0, 0.3))
    where = {"p": "a", "q": "a", "r": "b"}
    decision = decide(steady(graph, dict.fromkeys(where, 1.0), where, {"a": 1, "b": 1}))
    assert [move.instance for move in decision.moves] == [("p", 0)]
    assert decision.accuracy == near({"p": 0.6, "q": 1.0, "r": 0.3})


def test_more_than_a_core_is_not_promised_and_nothing_piles_up() -> None:
    decision = decide(steady(alone(Query("q", 0, 0.6)), {"q": 2.5}, {"q": "a"}, {"a": 4}, accuracy={"q": 0.4}))
    assert decision.accuracy == near({"q": 0.4})
    assert decision.below_minimum == ("q",)
    assert decision.reason.endswith("an instance of q would need 2.50 cores for all, and has one")


def test_a_query_that_was_shed_altogether_comes_back_as_far_as_there_is_room() -> None:
    graph = alone(Query("low", 0), Query("high", 1))
    where = {"low": "a", "high": "a"}
    full = decide(steady(graph, {"low": 0.8, "high": 0.8}, where, {"a": 0.8}))
    assert full.accuracy == near({"low": 0.0, "high": 1.0})
    after = steady(graph, {"low": 0.8, "high": 0.6}, where, {"a": 0.8}, accuracy={"low": 0.0}, known_cpu=full.full_cpu)
    assert decide(after).accuracy == near({"low": 0.25, "high": 1.0}), "0.2 of the 0.8 cores that it is known to take"


def test_a_task_that_used_no_cpu_holds_nobody_back() -> None:
    graph = TaskGraph((Task("src"), Task("sink", ("src",), ("q",))), (Query("q"),))
    where = {"src": "a", "sink": "a"}
    model = steady(graph, {"src": 0.0, "sink": 0.5}, where, {"a": 1}, accuracy={"src": 0.5, "sink": 0.5})
    assert decide(model).accuracy == {"q": 1.0}


GRAPH = alone(Query("q"))
GOOD = Model(GRAPH, (Machine("a", 1),), (TaskInstance("q", 0, "a", 1.0, 0.1),), {}, {"q": 1.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instances": ()}, "task 'q': expected an instance, got ()"),
        (
            {"instances": (TaskInstance("x", 0, "a", 1, 1),)},
            "task of an instance: expected a task of the graph, got 'x'",
        ),
        ({"instances": (TaskInstance("q", 0, "z", 1, 1),)}, "worker of an instance: expected one of ['a'], got 'z'"),
        (
            {"instances": (TaskInstance("q", 3, "a", -1.0, 0.5),)},
            "in_rate, cpu and floor of instance 3 of task 'q': "
            "expected numbers that are not negative, got (-1.0, 0.5, 0.0)",
        ),
        (
            {"instances": (TaskInstance("q", 3, "a", 1.0, float("nan")),)},
            "in_rate, cpu and floor of instance 3 of task 'q': "
            "expected numbers that are not negative, got (1.0, nan, 0.0)",
        ),
        (
            {"instances": (TaskInstance("q", 0, "a", 1, 1),) * 2},
            "the instances of a task: expected a number of its own for each, got ('q', 0)",
        ),
        ({"machines": (Machine("a", 1),) * 2}, "the workers: expected a name of its own for each, got ['a', 'a']"),
        ({"offered": {}}, "offered rate of source 'q': expected rows a second, got None"),
        (
            {"graph": taxi(), "instances": tuple(TaskInstance(n, 0, "a", 1, 1) for n in ON_A)},
            "output rate of 'src1' to 'snk1': expected rows a second, got None",
        ),
    ],
)
def test_a_bad_model_is_told_what_is_wrong(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadModel) as caught:
        decide(replace(GOOD, **change))  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: alone(Query("q", 1.5)), "priority of query 'q': expected an integer, got 1.5"),
        (lambda: alone(Query("q", True)), "priority of query 'q': expected an integer, got True"),
        (lambda: alone(Query("q", 1, 1.01)), "minimum accuracy of query 'q': expected a share from 0 to 1, got 1.01"),
        (lambda: alone(Query("q", 1, "0.5")), "minimum accuracy of query 'q': expected a share from 0 to 1, got '0.5'"),
        (lambda: Machine("a", -1), "cores of worker 'a': expected a number that is not negative, got -1"),
        (lambda: TaskGraph((), ()), "the graph: expected a task, got ()"),
        (lambda: TaskGraph((Task("t"),), ()), "task 't': expected a query that it feeds, got ()"),
        (
            lambda: TaskGraph((Task("t", (), ("x",)),), ()),
            "queries of task 't': expected a query of the graph, got 'x'",
        ),
        (lambda: alone(Query("q"), Query("q")), "query 'q': expected a name of its own, got 'it is there twice'"),
        (
            lambda: TaskGraph((Task("t", ("x",), ("q",)),), (Query("q"),)),
            "upstream of task 't': expected a task of the graph, got 'x'",
        ),
        (
            lambda: TaskGraph((Task("s"), Task("t", ("s", "u"), ("q",)), Task("u", ("t",))), (Query("q"),)),
            "the graph: expected no task that feeds itself, got 't'",
        ),
    ],
)
def test_a_bad_graph_is_told_what_is_wrong(make: object, message: str) -> None:
    with pytest.raises(BadModel) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value) == message
