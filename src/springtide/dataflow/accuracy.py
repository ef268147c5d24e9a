"""From what queries want to what each edge of the graph lets through, and back."""

from collections.abc import Mapping

from springtide.dataflow.graph import Graph, Keyed, Sink, Source
from springtide.plan.shedding import Shedding

Desired = Mapping[str, float]
"""By query: the share of the sources' rows to be processed for it."""


def served(graph: Graph, consumer: str) -> tuple[Sink, ...]:
    """The queries that a keyed step works for, or a step whose rows sinks take as they are."""
    if isinstance(graph[consumer], Keyed):
        return graph.queries(consumer)
    return tuple(sink for sink in graph.of(Sink) if sink.parents[0] == consumer)


def shedding(graph: Graph, desired: Desired) -> Shedding:
    """The shed rates that give each query what it wants, with rows shed as early as all of them allow.

    A source's consumers keep what they want of it; those of a keyed step keep a share of what the step has got.
    """
    wanted = {c: max(desired.get(sink.name, 1.0) for sink in served(graph, c)) for c in graph.feeders}
    keep = {}
    for consumer, producers in graph.feeders.items():
        for producer in producers:
            given = 1.0 if isinstance(graph[producer], Source) else wanted[producer]
            if wanted[consumer] < given:
                keep[producer, consumer] = wanted[consumer] / given
    return Shedding(keep)


def reached(graph: Graph, rates: Shedding) -> dict[str, float]:
    """By query: the share of the sources' rows that comes through to it; the least of its paths counts."""
    return {sink.name: min(kept(graph, rates, c) for c in working_for(graph, sink)) for sink in graph.of(Sink)}


def kept(graph: Graph, rates: Shedding, consumer: str) -> float:
    """The share of the sources' rows that reaches a keyed step, or one whose rows sinks take as they are."""
    found = []
    for producer in graph.feeders[consumer]:
        given = 1.0 if isinstance(graph[producer], Source) else kept(graph, rates, producer)
        found.append(rates.share(producer, consumer) * given)
    return min(found)


def working_for(graph: Graph, sink: Sink) -> tuple[str, ...]:
    """The steps of `feeders` that a query takes its rows from."""
    if graph.reads_sources(sink.name):
        return (sink.parents[0],)
    return tuple(sorted(graph.nearest_keyed(sink.name)))


def entries(graph: Graph, sink: Sink) -> dict[str, frozenset[str]]:
    """By source of a query: the steps through which the source's rows come to it first."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    ahead = list(working_for(graph, sink))
    while ahead:
        consumer = ahead.pop()
        if consumer in seen:
            continue
        seen.add(consumer)
        for producer in graph.feeders[consumer]:
            if isinstance(graph[producer], Source):
                found.setdefault(producer, set()).add(consumer)
            else:
                ahead.append(producer)
    return {source: frozenset(consumers) for source, consumers in found.items()}
