"""What holds for every decision of the controller, whatever the graph, the load and the machines."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import steady

from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import Query, Task, TaskGraph
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import QodDecision

STEP = 0.02
"""Accuracy that counts."""
SHAPES: dict[str, tuple[tuple[str, tuple[str, ...], bool], ...]] = {
    "alone": (("t", (), True),),
    "chain": (("src", (), False), ("mid", ("src",), False), ("t", ("mid",), True)),
    "fork": (("src", (), False), ("mid", ("src",), False), ("t", ("mid",), True), ("u", ("mid",), True)),
    "taxi": (("l", (), False), ("r", (), False), ("t", ("l", "r"), True), ("u", ("l", "r"), True)),
    "lopsided": (("l", (), False), ("r", (), False), ("t", ("l", "r"), True), ("u", ("l",), True)),
    "through": (("src", (), False), ("t", ("src",), True), ("u", ("t", "src"), True)),
}
"""Tasks, what feeds each, and whether a query's result leaves there."""


@st.composite
def graphs(draw: st.DrawFn) -> TaskGraph:
    tasks, queries = [], []
    for app, shape in enumerate(draw(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=4))):
        for name, upstream, ends in SHAPES[shape]:
            full = f"{app}/{name}"
            tasks.append(Task(full, tuple(f"{app}/{u}" for u in upstream), (full,) if ends else ()))
            if ends:
                queries.append(Query(full, draw(st.integers(0, 2)), draw(st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.6]))))
    return TaskGraph(tuple(tasks), tuple(queries))


@st.composite
def models(draw: st.DrawFn, workers: str = "abc") -> Model:
    graph = draw(graphs())
    cores = {w: draw(st.sampled_from([0.3, 0.5, 1.0, 2.0, 4.0])) for w in workers}
    costs = {name: draw(st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.7, 1.0, 1.6])) for name in graph.names}
    where = {name: draw(st.text(workers, min_size=1, max_size=3)) for name in graph.names}
    return steady(graph, costs, where, cores)


def costs(model: Model) -> dict[str, float]:
    """By task: all are at full accuracy, so that what an instance uses is what that costs."""
    return {instance.task: instance.cpu for instance in model.instances}


def placed(model: Model, decision: QodDecision) -> list[tuple[str, str]]:
    """Task and worker of each instance after the moves."""
    to = {move.instance: move.target for move in decision.moves}
    return [(i.task, to.get((i.task, i.number), i.worker)) for i in model.instances]


def fits(model: Model, where: list[tuple[str, str]], accuracy: dict[str, float]) -> bool:
    """Whether machines and single cores can do it, computed query by query."""
    feeds: dict[str, set[str]] = {}
    for query in model.graph.queries:
        waiting = [query.name]
        while waiting:
            task = waiting.pop()
            feeds.setdefault(task, set()).add(query.name)
            waiting += model.graph.tasks[model.graph.index[task]].upstream
    needed = {task: costs(model)[task] * max(accuracy[q] for q in queries) for task, queries in feeds.items()}
    used = dict.fromkeys((m.id for m in model.machines), 0.0)
    for task, worker in where:
        used[worker] += needed[task]
    return max(needed.values()) <= 1 + 1e-6 and all(used[m.id] <= m.cores + 1e-6 for m in model.machines)


def _shared(model: Model, tasks: tuple[str, ...]) -> bool:
    """Whether these feed the same tasks."""
    after = [{task.name for task in model.graph.tasks if before in task.upstream} for before in tasks]
    return all(each == after[0] for each in after)


given_models = given(models())
often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@often
@given_models
def test_all_shares_are_shares_and_nothing_piles_up(model: Model) -> None:
    decision = decide(model)
    shares = (decision.accuracy, decision.task_accuracy, decision.admit, decision.keep)
    assert all(0 <= share <= 1 for found in shares for share in found.values())
    assert fits(model, placed(model, decision), dict(decision.accuracy))
    assert decision.keep.keys() == set(model.graph.edges)
    assert decision.admit.keys() == {task.name for task in model.graph.tasks if not task.upstream}


@often
@given_models
def test_minima_are_held_if_the_machines_can_hold_them(model: Model) -> None:
    minima = {query.name: query.minimum_accuracy for query in model.graph.queries}
    as_it_is = [(i.task, i.worker) for i in model.instances]
    decision = decide(model)
    below = {q for q, accuracy in decision.accuracy.items() if accuracy < minima[q] - 1e-9}
    assert below == set(decision.below_minimum)
    if fits(model, as_it_is, minima):
        assert not below
        assert not decision.moves, "it moves only if a minimum cannot be held"
        for task, accuracy in decision.task_accuracy.items():
            assert accuracy >= model.graph.minima[model.graph.index[task]] - 1e-9


@often
@given_models
def test_no_query_has_less_than_it_could_while_a_lower_one_could_give_way(model: Model) -> None:
    decision = decide(model)
    if decision.moves:
        return
    where = placed(model, decision)
    for query in model.graph.queries:
        has = decision.accuracy[query.name]
        more = min(1.0, has + STEP)
        for held_below in (True, False):
            # Lower ones at their minimum; to bring one to its minimum, at nothing.
            if held_below and has >= query.minimum_accuracy - STEP:
                continue
            wanted = {
                q.name: decision.accuracy[q.name]
                if q.priority >= query.priority
                else 0.0
                if held_below
                else min(q.minimum_accuracy, decision.accuracy[q.name])
                for q in model.graph.queries
            }
            assert has > 1 - STEP or not fits(model, where, wanted | {query.name: more}), (query, held_below)


@often
@given_models
def test_along_every_way_what_is_kept_is_what_the_query_wants(model: Model) -> None:
    decision = decide(model)
    for query in model.graph.queries:
        ways = [(query.name, 1.0)]
        while ways:
            task, kept = ways.pop()
            upstream = model.graph.tasks[model.graph.index[task]].upstream
            ways += [(before, kept * decision.keep[before, task]) for before in upstream]
            if not upstream:
                assert decision.admit[task] * kept == pytest.approx(decision.task_accuracy[query.name], abs=1e-9)
        assert decision.task_accuracy[query.name] >= decision.accuracy[query.name]


@often
@given_models
def test_what_two_streams_give_to_a_union_is_equally_accurate(model: Model) -> None:
    decision = decide(model)
    for task in model.graph.tasks:
        into = [decision.task_accuracy[u] * decision.keep[u, task.name] for u in task.upstream]
        assert into == pytest.approx([decision.task_accuracy[task.name]] * len(into), abs=1e-9)
        if _shared(model, task.upstream):
            assert len({decision.task_accuracy[u] for u in task.upstream}) <= 1


@often
@given(models(), st.randoms(use_true_random=False))
def test_it_decides_the_same_whatever_is_shed_now_and_in_whatever_order(model: Model, random: object) -> None:
    decision = decide(model)
    again = decide(model)
    assert again == decision
    assert again.reasons == decision.reasons
    if decision.moves:  # Where to depends on what is in use now, and of equals on the last digit of a sum.
        return
    instances = list(model.instances)
    random.shuffle(instances)  # type: ignore[attr-defined]
    shuffled = decide(replace(model, instances=tuple(instances)))
    assert shuffled.accuracy == pytest.approx(decision.accuracy, abs=STEP)
    now = {task: max(0.05, accuracy) for task, accuracy in decision.task_accuracy.items()}
    where: dict[str, str] = {}
    for instance in model.instances:
        where[instance.task] = where.get(instance.task, "") + instance.worker
    cores = {machine.id: machine.cores for machine in model.machines}
    later = decide(steady(model.graph, costs(model), where, cores, accuracy=now))
    assert later.accuracy == pytest.approx(decision.accuracy, abs=STEP)
    assert not later.moves


@often
@given(models(workers="a"), st.floats(1.0, 3.0))
def test_the_highest_priority_loses_nothing_by_more_cores(model: Model, factor: float) -> None:
    more = replace(model, machines=tuple(replace(m, cores=m.cores * factor) for m in model.machines))
    before, after = decide(model).accuracy, decide(more).accuracy
    highest = max(query.priority for query in model.graph.queries)
    for query in model.graph.queries:
        if query.priority == highest:
            assert after[query.name] >= before[query.name] - STEP


@often
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.2, 0.5])), min_size=1, max_size=6), st.data())
def test_more_cores_lower_no_query_of_a_single_task(kinds: list[tuple[int, float]], data: st.DataObject) -> None:
    queries = tuple(Query(f"q{n}", *kind) for n, kind in enumerate(kinds))
    graph = TaskGraph(tuple(Task(q.name, (), (q.name,)) for q in queries), queries)
    each = {q.name: data.draw(st.sampled_from([0.1, 0.4, 1.0])) for q in queries}
    few, many = sorted(data.draw(st.tuples(st.floats(0.1, 5), st.floats(0.1, 5))))
    before, after = (
        decide(steady(graph, each, dict.fromkeys(each, "a"), {"a": cores})).accuracy for cores in (few, many)
    )
    assert all(after[name] >= before[name] - 1e-6 for name in each)


@often
@given(st.integers(2, 6), st.floats(0.1, 3), st.sampled_from([0.0, 0.3]))
def test_equal_queries_are_treated_equally(size: int, cores: float, minimum: float) -> None:
    queries = tuple(Query(f"q{n}", 1, minimum) for n in range(size))
    graph = TaskGraph(tuple(Task(q.name, (), (q.name,)) for q in queries), queries)
    names = [q.name for q in queries]
    decision = decide(steady(graph, dict.fromkeys(names, 0.6), dict.fromkeys(names, "a"), {"a": cores}))
    assert list(decision.accuracy.values()) == pytest.approx([min(1.0, cores / size / 0.6)] * size, abs=1e-6)
