"""The scenarios of Stream Economics in a closed loop: a controller that decides each cycle, and a load that follows."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from fluid import Cycle, Fluid
from streams import alone, taxi

from springtide.policies.shedding.graph import Query, Task, TaskGraph

NOISE = 0.005
COST = {"src1": 0.05, "src2": 0.05, "snk1": 0.3, "snk2": 0.25}
"""Cores of an instance for a thousand rows a second of each stream; snk2 has two instances."""


def ramp(start: float, end: float, step: float = 0.02) -> Iterable[float]:
    """A rate that changes by a share each cycle, and then stays for a while."""
    rate = start
    while (rate < end) == (start < end):
        yield rate
        rate *= 1 + step if end > start else 1 - step
    yield from [end] * 6


def fixed_sources(graph: TaskGraph) -> TaskGraph:
    """Readers stay where they are."""
    return replace(graph, tasks=tuple(t if t.upstream else Task(t.name, movable=False) for t in graph.tasks))


def taxis(fluid: Fluid, rates: Iterable[float], **other: float) -> list[Cycle]:
    return [fluid.run({"src1": rate, "src2": rate, **other}) for rate in rates]


def settled(fluid: Fluid) -> list[Cycle]:
    """The cycles in which nothing warmed up, and the decision before was not made while something did."""
    past = fluid.past
    return [now for before, now in pairwise(past) if not now.warming and not before.decision.moves]


def below_minimum(fluid: Fluid) -> list[tuple[str, float]]:
    minima = {query.name: query.minimum_accuracy for query in fluid.graph.queries}
    return [
        (query, accuracy)
        for cycle in settled(fluid)
        for query, accuracy in cycle.accuracy.items()
        if accuracy < minima[query] - NOISE
    ]


def inversions(fluid: Fluid) -> list[tuple[str, float, str, float]]:
    """A query that shed more than a lower one with an instance on the same worker, that was above its minimum."""
    found = []
    for cycle in settled(fluid):
        for high in fluid.graph.queries:
            for low in fluid.graph.queries:
                if high.name not in cycle.accuracy or low.name not in cycle.accuracy or low.priority >= high.priority:
                    continue
                together = {w for k, w in cycle.where.items() if k[0] == high.name} & {
                    w for k, w in cycle.where.items() if k[0] == low.name
                }
                one, other = cycle.accuracy[high.name], cycle.accuracy[low.name]
                if together and one < other - NOISE and other > low.minimum_accuracy + NOISE:
                    found.append((high.name, one, low.name, other))
    return found


def test_scenario_1_equal_priorities() -> None:
    where = {("src1", 0): "tm1", ("src2", 0): "tm1", ("snk1", 0): "tm1", ("snk2", 0): "tm1", ("snk2", 1): "tm1"}
    fluid = Fluid(fixed_sources(taxi(minima=(0.4, 0.6))), COST, where, {"tm1": 1.0})
    calm = taxis(fluid, ramp(600, 1_000))
    assert all(cycle.accuracy == {"snk1": 1.0, "snk2": 1.0} for cycle in calm)

    # A: a second machine joins; the load grows beyond the first one. Both shed, and nobody moves.
    fluid.cores["tm2"] = 1.0
    busy = taxis(fluid, ramp(1_000, 1_500))
    assert 0.4 < busy[-1].accuracy["snk1"] < 0.9
    assert 0.6 < busy[-1].accuracy["snk2"] < 0.9
    # B: the load falls, and nothing is shed any more.
    assert taxis(fluid, ramp(1_500, 900))[-1].accuracy == {"snk1": 1.0, "snk2": 1.0}
    assert set(fluid.where.values()) == {"tm1"}

    # C: the minima do not fit. snk1's take 0.4 x 0.3, those of an instance of snk2 0.6 x 0.25: snk1 goes.
    taxis(fluid, ramp(900, 2_300))
    moves = [move for cycle in fluid.past for move in cycle.decision.moves]
    assert [(move.instance, move.target) for move in moves] == [(("snk1", 0), "tm2")]
    # The first machine is full, with the sources for snk1 and with snk2; both have more than they had before.
    one, two = (fluid.past[-1].accuracy[name] for name in ("snk1", "snk2"))
    assert 2.3 * (0.1 * one + 0.5 * two) == pytest.approx(0.95, abs=0.01)
    assert one > 0.8
    assert two > 0.62
    # D: still more, and one instance of snk2 goes as well.
    taxis(fluid, ramp(2_300, 2_900))
    moves = [move for cycle in fluid.past for move in cycle.decision.moves]
    assert [move.instance[0] for move in moves] == ["snk1", "snk2"]

    assert not below_minimum(fluid)
    assert max(cycle.lag_s for cycle in fluid.past) < 5.0, "less than a cycle's rows ever wait"
    assert fluid.past[-1].lag_s == 0
    longest = max(len([c for c in fluid.past if move.instance in c.warming]) for move in moves)
    assert longest * 5 < 60, "seconds that anybody warmed up"


def test_scenario_2_different_priorities() -> None:
    where = {("src1", 0): "tm1", ("src2", 0): "tm2", ("snk1", 0): "tm1", ("snk2", 0): "tm1", ("snk2", 1): "tm1"}
    graph = fixed_sources(taxi(priorities=(1, 2), minima=(0.4, 0.6)))
    fluid = Fluid(graph, COST, where, {"tm1": 1.0, "tm2": 1.0})
    taxis(fluid, ramp(800, 1_000))

    # A: knn comes, is unknown, and goes where the least CPU is in use.
    fluid.start(alone(Query("knn", 0, 0.2)), {"knn": 0.4}, {"knn": 1})
    assert fluid.where["knn", 0] == "tm2"
    assert not fluid.past[-1].warming
    first = taxis(fluid, [1_000], knn=1_000)[0]
    assert first.warming == {("knn", 0)}
    assert first.decision.accuracy["snk2"] == 0.6, "its source is beside the one that warms up"
    assert taxis(fluid, [1_000] * 4, knn=1_000)[-1].accuracy == pytest.approx({"snk1": 1, "snk2": 1, "knn": 1})

    # B: knn's load grows beyond its machine; it alone sheds.
    for rate in ramp(1_000, 3_000):
        last = fluid.run({"src1": 1_000, "src2": 1_000, "knn": rate})
    assert last.accuracy["snk1"] == last.accuracy["snk2"] == 1.0
    assert last.accuracy["knn"] == pytest.approx(0.9 / 1.2, abs=0.02)
    assert not any(cycle.decision.moves for cycle in fluid.past)

    # The taxis' load grows: snk1 gives way before snk2 does.
    crowded = taxis(fluid, ramp(1_000, 1_300), knn=3_000)
    assert all(cycle.accuracy["snk2"] > 0.99 for cycle in crowded)
    assert 0.4 < crowded[-1].accuracy["snk1"] < 0.9

    # C: down to its minimum, then snk2 to its own; then snk1, the lowest on its machine, moves, and knn makes room.
    before = fluid.past[-1].accuracy["knn"]
    taxis(fluid, ramp(1_300, 2_400), knn=3_000)
    moves = [move for cycle in fluid.past for move in cycle.decision.moves]
    assert [(move.instance, move.target) for move in moves] == [(("snk1", 0), "tm2")]
    assert fluid.past[-1].accuracy["knn"] < before - 0.2

    assert not below_minimum(fluid)
    assert not inversions(fluid)
    assert max(cycle.lag_s for cycle in fluid.past) < 5.0
    assert fluid.past[-1].lag_s == 0


def test_without_a_controller_the_same_load_piles_up() -> None:
    """The fluid is no friend of anybody: it is the decisions that keep rows from waiting."""
    where = {("src1", 0): "tm1", ("src2", 0): "tm1", ("snk1", 0): "tm1", ("snk2", 0): "tm1", ("snk2", 1): "tm1"}
    fluid = Fluid(taxi(), COST, where, {"tm1": 1.0})
    for rate in ramp(1_000, 1_500):
        fluid.last = None
        cycle = fluid.run({"src1": rate, "src2": rate})
    assert cycle.lag_s > 10
