"""From what queries want to what each edge keeps: on any graph, as early as possible, and the same by every way."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import App, agg, sinks, sources
from springtide.dataflow.accuracy import entries, kept, reached, served, shedding, working_for
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Graph, Keyed, Sink, Source
from springtide.dataflow.restrictions import Restrictions
from springtide.plan.shedding import BITS, NOTHING, Shedding, threshold


@st.composite
def dataflows(draw: st.DrawFn) -> Graph:
    """Sources, keyed steps that read unions of whatever came before, and queries, some on rows as they are."""
    app = App("any")
    streams = [app.source(f"s{n}", sources.generator(1)) for n in range(draw(st.integers(1, 3)))]
    used: set[int] = set()
    first_keyed = len(streams)
    for number in range(draw(st.integers(0, 5))):
        some = draw(st.lists(st.integers(0, len(streams) - 1), min_size=1, max_size=3, unique=True))
        used |= set(some)
        read = streams[some[0]].filter(f"f{number}", "true")
        if len(some) > 1:
            read = read.union(f"u{number}", *(streams[other] for other in some[1:]))
        streams.append(read.key_by("key").aggregate(f"k{number}", n=agg.count()))
    for number, stream in enumerate(streams):
        if number not in used or draw(st.booleans()):
            if number < first_keyed and draw(st.booleans()):
                stream = stream.filter(f"raw{number}", "true")
            stream.sink(f"q{number}", sinks.noop())
    return app.graph()


def wants(graph: Graph, data: st.DataObject) -> dict[str, float]:
    share = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
    return {sink.name: data.draw(share) for sink in graph.of(Sink)}


def ways(graph: Graph, step: str, consumer: str) -> Iterator[list[tuple[str, str]]]:
    """Every way from a source to a step, as edges from producer to consumer: walked node by node, upwards."""
    for parent in graph[step].parents or ():
        node = graph[parent]
        if isinstance(node, Source):
            yield [(parent, consumer)]
        elif isinstance(node, Keyed):
            for way in ways(graph, parent, parent):
                yield [*way, (parent, consumer)]
        else:
            yield from ways(graph, parent, consumer)


def ways_to(graph: Graph, consumer: str) -> list[list[tuple[str, str]]]:
    """A sink may take a source's rows as they are: then the source is its own consumer."""
    if isinstance(graph[consumer], Source):
        return [[(consumer, consumer)]]
    return list(ways(graph, consumer, consumer))


def queries_after(graph: Graph, step: str) -> set[str]:
    found = {step} if isinstance(graph[step], Sink) else set()
    return found.union(*(queries_after(graph, consumer) for consumer in graph.consumers[step]))


@settings(max_examples=150, deadline=None)
@given(dataflows(), st.data())
def test_every_way_to_a_step_keeps_what_its_most_demanding_query_wants(graph: Graph, data: st.DataObject) -> None:
    desired = wants(graph, data)
    rates = shedding(graph, desired)
    assert all(0 <= share <= 1 for share in rates.keep.values())
    for consumer in graph.feeders:
        of = {sink.name for sink in served(graph, consumer)}
        if isinstance(graph[consumer], Keyed):
            assert of == queries_after(graph, consumer)
        most = max(desired[query] for query in of)
        for way in ways_to(graph, consumer):
            product = 1.0
            for producer, into in way:
                product *= rates.share(producer, into)
            # Equal on all ways: no stream of a union is thinned out more than another.
            assert product == pytest.approx(most)
        assert kept(graph, rates, consumer) == pytest.approx(most)


@settings(max_examples=150, deadline=None)
@given(dataflows(), st.data())
def test_rows_are_shed_as_early_as_all_queries_allow(graph: Graph, data: st.DataObject) -> None:
    desired = wants(graph, data)
    rates = shedding(graph, desired)
    for (producer, consumer), share in rates.keep.items():
        assert share < 1, "an edge that keeps all is not named"
        if isinstance(graph[producer], Source):
            assert share == pytest.approx(max(desired[sink.name] for sink in served(graph, consumer)))
        else:
            # Another query of the producer wants the rows that this consumer does not.
            assert max(desired[q] for q in queries_after(graph, producer)) > max(
                desired[sink.name] for sink in served(graph, consumer)
            )


@settings(max_examples=100, deadline=None)
@given(dataflows(), st.data())
def test_a_query_reaches_what_it_wants_or_more_if_others_need_the_rows(graph: Graph, data: st.DataObject) -> None:
    desired = wants(graph, data)
    found = reached(graph, shedding(graph, desired))
    assert found.keys() == desired.keys()
    for query, share in found.items():
        assert share >= desired[query] - 1e-9
    assert reached(graph, NOTHING) == dict.fromkeys(desired, 1.0)
    assert not shedding(graph, dict.fromkeys(desired, 1.0)).any
    assert not shedding(graph, {}).any, "a query that says nothing wants all"


@settings(max_examples=100, deadline=None)
@given(dataflows())
def test_the_entries_of_a_query_are_where_its_ways_begin(graph: Graph) -> None:
    for sink in graph.of(Sink):
        expected: dict[str, set[str]] = {}
        for consumer in working_for(graph, sink):
            for way in ways_to(graph, consumer):
                source, first = way[0]
                expected.setdefault(source, set()).add(first)
        assert entries(graph, sink) == {source: frozenset(firsts) for source, firsts in expected.items()}


def shop() -> App:
    app = App("shop")
    orders = app.source("orders", sources.generator(1)).key_by("key").aggregate("count", n=agg.count())
    orders.sink("log", sinks.noop()).with_minimum_accuracy(0.3).with_priority(2)
    orders.sink("bill", sinks.noop()).with_priority(7)
    return app


def test_a_step_has_the_highest_restrictions_of_its_queries() -> None:
    graph = shop().graph()
    assert graph.restrictions("count") == graph.restrictions("orders") == Restrictions(7, 1.0)
    assert graph.restrictions("log") == Restrictions(2, 0.3)
    assert graph.may_shed


@pytest.mark.parametrize("accuracy", [-0.1, 1.01, float("nan"), "0.5", None, True])
def test_a_bad_accuracy_names_the_query(accuracy: Any) -> None:
    app = App("app")
    query = app.source("rows", sources.generator(1)).sink("log", sinks.noop())
    with pytest.raises(BadGraph, match=r"'log'.*minimum accuracy from 0 to 1") as refused:
        query.with_minimum_accuracy(accuracy)
    assert (refused.value.step, repr(accuracy) in str(refused.value)) == ("log", True)
    assert app.graph()["log"] == Sink("log", ("rows",), app.graph()["log"].spec)  # type: ignore[union-attr]


@pytest.mark.parametrize("priority", [1.0, "high", None, True])
def test_a_bad_priority_names_the_query(priority: Any) -> None:
    query = App("app").source("rows", sources.generator(1)).sink("log", sinks.noop())
    with pytest.raises(BadGraph, match=r"'log'.*a priority that is a whole number") as refused:
        query.with_priority(priority)
    assert (refused.value.step, repr(priority) in str(refused.value)) == ("log", True)


@pytest.mark.parametrize("accuracy", [0, 1, 0.0, 1.0, 0.5])
def test_the_bounds_of_an_accuracy_are_good(accuracy: float) -> None:
    found = Restrictions().with_minimum_accuracy("log", accuracy)
    assert (found.minimum_accuracy, found.may_shed) == (accuracy, accuracy < 1)


@given(st.dictionaries(st.tuples(st.text(), st.text()), st.floats(0, 1)))
def test_shed_rates_survive_a_manifest(keep: dict[tuple[str, str], float]) -> None:
    rates = Shedding(keep)
    assert Shedding.from_json(json.loads(json.dumps(rates.to_json()))) == rates


@pytest.mark.parametrize("share", [-0.01, 1.01, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"from 'a' to 'b': expected 0 to 1"):
        Shedding({("a", "b"): share})


@given(st.floats(0, 1), st.floats(0, 1))
def test_whoever_keeps_more_keeps_what_others_keep(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0 <= threshold(less) <= threshold(more) <= 1 << BITS
    assert threshold(less) / (1 << BITS) == pytest.approx(less)
    assert (threshold(0.0), threshold(1.0)) == (0, 1 << BITS)
