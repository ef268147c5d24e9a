"""What was offered to each query in an epoch, and what became of it."""

from collections.abc import Mapping

from springtide.dataflow.economy import entries, reached
from springtide.dataflow.graph import Graph, Sink
from springtide.engine.shedder import Tally
from springtide.metrics.report import QueryReport
from springtide.plan.shedding import Shedding


def accounts(graph: Graph, rates: Shedding, tallies: Mapping[str, Tally]) -> tuple[QueryReport, ...]:
    """By query; none if nothing was counted, because no query can do with less."""
    if not tallies:
        return ()
    shares = reached(graph, rates)
    return tuple(_account(graph, sink, rates, tallies, shares[sink.name]) for sink in graph.of(Sink))


def _account(
    graph: Graph, sink: Sink, rates: Shedding, tallies: Mapping[str, Tally], share: float
) -> QueryReport:
    """A row that only some of a query's branches get is not processed: the branch with the fewest counts."""
    offered = processed = shed = dead = 0
    least = 1.0
    for source, consumers in entries(graph, sink).items():
        kept = min(rates.share(source, consumer) for consumer in consumers)
        least = min(least, kept)
        offered += tallies[source].offered
        dead += tallies[source].dead_letters
        processed += tallies[source].kept[kept]
        shed += tallies[source].shed[kept]
    good = offered - dead
    between = share / least if least else 1.0
    return QueryReport(
        sink.name, offered, processed, shed, dead, (processed / good if good else 1.0) * between,
        sink.restrictions.priority, sink.restrictions.minimum_accuracy,
    )  # fmt: skip


def shed_for(graph: Graph, step: str, rates: Shedding, tallies: Mapping[str, Tally]) -> int:
    """The rows that a step was spared."""
    counted = [producer for producer in graph.feeders.get(step, ()) if producer in tallies]
    return sum(tallies[producer].shed[rates.share(producer, step)] for producer in counted)
