"""DS2: one pass gives every step the fewest instances that keep up with the sources."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import LECTURE, Flow, Step, changes, line

from springtide.ids import WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Snapshot, Source
from springtide.policies.decision import Hold, Scale
from springtide.policies.scaling.ds2 import Ds2, needs, whole

W = WorkerId("w0")
some = settings(max_examples=80, deadline=None)
rates = st.floats(50, 5_000)


@st.composite
def flows(draw: st.DrawFn, falls: float = 0.0, largest: float = 30.0) -> Flow:
    """Any graph of up to 5 steps, each fed by one or two of the sources and steps before it."""
    sources = {f"s{i}": draw(st.floats(100, 10_000)) for i in range(draw(st.integers(1, 2)))}
    steps: dict[str, Step] = {}
    edges: list[Edge] = []
    pushed = dict(sources)
    for name in "abcde"[: draw(st.integers(1, 5))]:
        parents = draw(st.lists(st.sampled_from(sorted(pushed)), min_size=1, max_size=2, unique=True))
        into = [Edge(parent, name, draw(st.floats(0.2, 1.5))) for parent in parents]
        rate = sum(pushed[edge.upstream] * edge.ratio for edge in into)
        steps[name] = Step(rate / draw(st.floats(0.1, largest)), draw(st.floats(0.2, 2)))
        pushed[name] = rate * steps[name].selectivity
        edges += into
    return Flow(sources, steps, tuple(edges), draw(st.integers(1, 4)), falls=falls)


@st.composite
def starts(draw: st.DrawFn, flow: Flow, most: int = 30) -> dict[str, int]:
    return {name: draw(st.integers(1, most)) for name in flow.steps}


def step(flow: Flow, parallelism: Mapping[str, int]) -> dict[str, int]:
    return {name: need.parallelism for name, need in needs(flow.apart(parallelism)).items()}


def least(flow: Flow) -> dict[str, int]:
    """The fewest instances that keep up, found by trying."""

    def enough(name: str, rate: float, p: int) -> bool:
        return p * flow.each(name, p) >= rate * (1 - 1e-9)

    return {name: next(p for p in range(1, 1_000) if enough(name, rate, p)) for name, rate in flow.demand().items()}


def test_the_example_of_the_lecture() -> None:
    """Source 2 000 rows/s; 2 instances at 1 000 in all push 3 800; 3 instances at 2 930 in all."""
    instances = (
        *(Instance("split", i, W, 2.0, 1_000, 3_800) for i in range(2)),
        *(Instance("count", i, W, 3.0, 2_930, 600) for i in range(3)),
    )
    edges = (Edge("lines", "split"), Edge("split", "count"))
    workers = tuple(MeasuredWorker(WorkerId(f"w{i}"), 2) for i in range(3))
    snapshot = Snapshot(0.0, 10.0, 5, (Source("lines", 2_000),), edges, instances, workers)
    assert needs(snapshot)["count"].instances == pytest.approx(7.78, abs=0.005)
    decision = Ds2()(snapshot, ())
    assert decision == Scale(
        6,
        "count needs 7.8 instances for 7 600 rows/s at 977 rows/s each; "
        "split needs 4.0 instances for 2 000 rows/s at 500 rows/s each; 11.8 slots in all: 6 workers of 2 slots",
        {"split": 4, "count": 8},
    )


def test_one_step_is_enough_from_a_start_with_far_too_few() -> None:
    assert changes(Ds2(), LECTURE, {"a": 1, "b": 1}) == [{"a": 4, "b": 8}]


def test_a_union_adds_up_and_a_diamond_counts_both_ways() -> None:
    edges = (
        Edge("s", "split"),
        Edge("split", "left", 0.25),
        Edge("split", "right"),
        Edge("left", "join"),
        Edge("right", "join"),
        Edge("t", "join", 0.5),
    )
    steps = {"split": Step(100, 2), "left": Step(100), "right": Step(100, 0.5), "join": Step(100)}
    flow = Flow({"s": 400, "t": 200}, steps, edges)
    needed = needs(flow.apart(dict.fromkeys(steps, 3)))
    assert {name: need.rate for name, need in needed.items()} == pytest.approx(
        {"split": 400, "left": 200, "right": 800, "join": 200 + 400 + 100}
    )
    assert {name: need.parallelism for name, need in needed.items()} == {"split": 4, "left": 2, "right": 8, "join": 7}


def test_instances_without_rows_say_nothing_about_the_rate() -> None:
    snapshot = line(900, Step(100)).apart({"a": 3})
    idle = Instance("a", 3, W, 0.0, 0.0, 0.0)
    assert needs(replace(snapshot, instances=(*snapshot.instances, idle)))["a"].parallelism == 9


def unmeasured(flow: Flow, parallelism: dict[str, int], name: str) -> Snapshot:
    """What is measured, but for one step."""
    snapshot = flow.apart(parallelism)
    blank = {"useful_s": 0.0, "records_in": 0.0, "records_out": 0.0}
    return replace(
        snapshot, instances=tuple(replace(i, **blank) if i.operator == name else i for i in snapshot.instances)
    )


def test_a_step_without_measurement_keeps_its_parallelism_and_is_named() -> None:
    decision = Ds2()(unmeasured(LECTURE.times(5), {"a": 2, "b": 3}, "b"), ())
    assert isinstance(decision, Scale)
    assert decision.parallelism == {"a": 20, "b": 3}
    assert "without measurement and left as they are: b" in decision.reason


def test_no_worker_is_let_go_while_rows_go_to_a_step_without_measurement() -> None:
    decision = Ds2()(unmeasured(line(100, Step(100), Step(100)), {"a": 4, "b": 4}, "b"), ())
    assert isinstance(decision, Hold)
    idle = Flow({"rows": 100, "none": 0}, {"a": Step(100), "b": Step(100)}, (Edge("rows", "a"), Edge("none", "b")))
    decision = Ds2()(idle.apart({"a": 4, "b": 4}), ())
    assert isinstance(decision, Scale)
    assert (decision.workers, decision.parallelism) == (1, {"a": 1, "b": 4})


def test_it_holds_if_nothing_was_measured() -> None:
    nothing = LECTURE.times(0).apart({"a": 1, "b": 1})
    assert Ds2()(nothing, ()) == Hold("no operator had rows: there is nothing to go by")
    assert Ds2()(replace(nothing, workers=()), ()) == Hold("there are no workers", warning=True)


def test_it_says_why_it_holds() -> None:
    decision = Ds2()(LECTURE.apart({"a": 4, "b": 8}), ())
    assert isinstance(decision, Hold)
    assert decision.reason.startswith("on target: b needs 7.8 instances for 7 600 rows/s at 977 rows/s each; ")
    assert decision.reason.endswith("11.8 slots in all: 12 workers of 1 slot")


def test_a_long_graph_is_told_by_those_that_need_most() -> None:
    decision = Ds2()(line(1_000, *(Step(100 * i) for i in range(1, 7))).apart(dict.fromkeys("abcdef", 1)), ())
    assert decision.reason.startswith("a needs 10.0")
    assert "; 3 others need 6.2; " in decision.reason


@some
@given(st.data())
def test_linear_steps_get_what_they_need_at_once_no_more_and_no_less(data: st.DataObject) -> None:
    flow = data.draw(flows())
    assert step(flow, data.draw(starts(flow))) == least(flow)


@some
@given(st.data())
def test_workers_have_a_slot_for_all_busy_time_and_no_worker_more(data: st.DataObject) -> None:
    flow = data.draw(flows())
    present = data.draw(st.integers(1, 20))
    decision = Ds2()(flow.sharing(present), ())
    workers = decision.workers if isinstance(decision, Scale) else present
    busy = sum(rate / flow.steps[name].rate for name, rate in flow.demand().items())
    assert workers * flow.slots >= busy * (1 - 1e-6)
    assert workers == 1 or (workers - 1) * flow.slots < busy


@some
@given(st.data(), st.floats(1, 4))
def test_a_higher_rate_never_needs_less(data: st.DataObject, factor: float) -> None:
    flow = data.draw(flows())
    start = data.draw(starts(flow))
    before, after = needs(flow.apart(start)), needs(flow.times(factor).apart(start))
    assert all(after[name].instances >= before[name].instances * (1 - 1e-9) for name in flow.steps)
    assert all(after[name].parallelism >= before[name].parallelism for name in flow.steps)


@some
@given(st.data())
def test_three_steps_are_enough_if_scaling_is_a_little_worse_than_linear(data: st.DataObject) -> None:
    """And on the way up it never asks for more than it ends with, on the way down never for less.

    So it is for steps that end with up to about 30 instances; for hundreds, a fourth step adds the last one.
    """
    flow = data.draw(flows(falls=0.1, largest=21))
    start = data.draw(starts(flow))
    first = step(flow, start)
    second = step(flow, first)
    third = step(flow, second)
    assert step(flow, third) == third
    for name, fewest in least(flow).items():
        way = [start[name], first[name], second[name], third[name]]
        assert way[1:] == sorted(way[1:], reverse=start[name] > third[name]), "it does not turn round"
        assert way[-1] * flow.each(name, way[-1]) >= flow.demand()[name] * (1 - 1e-6), "and it keeps up"
        if start[name] <= fewest:
            assert way[-1] == fewest


@some
@given(st.floats(0, 1e6))
def test_whole_numbers_forgive_noise_only(needed: float) -> None:
    assert needed * (1 - 1e-8) <= whole(needed) <= needed + 1
    assert whole(math.ceil(needed) * (1 + 1e-12)) == math.ceil(needed)
