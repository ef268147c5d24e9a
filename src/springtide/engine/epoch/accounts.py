"""What became of an epoch's rows: at its sources, in its steps, for each query."""

from collections.abc import Mapping
from dataclasses import asdict

from springtide.blocks.manifest import Manifest, OperatorState
from springtide.dataflow.accuracy import entries, reached
from springtide.dataflow.graph import Graph, Sink, Union
from springtide.engine.epoch.computed import Computed
from springtide.engine.shedding.sampler import Tally
from springtide.metrics.account import Account, StepAccount
from springtide.metrics.report import OperatorReport, QueryReport
from springtide.plan.shedding import Shedding


def accounts(graph: Graph, rates: Shedding, tallies: Mapping[str, Tally]) -> tuple[QueryReport, ...]:
    """By query; none if nothing was counted, because no query can do with less."""
    if not tallies:
        return ()
    shares = reached(graph, rates)
    return tuple(_account(graph, sink, rates, tallies, shares[sink.name]) for sink in graph.of(Sink))


def _account(graph: Graph, sink: Sink, rates: Shedding, tallies: Mapping[str, Tally], share: float) -> QueryReport:
    """A row that only some of a query's branches get is not processed: the branch with the fewest counts."""
    offered = processed = shed = dead = 0
    least = 1.0
    for source, consumers in entries(graph, sink).items():
        kept = min(rates.share(source, consumer) for consumer in consumers)
        least = min(least, kept)
        offered += tallies[source].offered
        dead += tallies[source].dead_letters[kept]
        processed += tallies[source].kept[kept]
        shed += tallies[source].shed(kept)
    between = share / least if least else 1.0
    return QueryReport(
        sink.name,
        offered,
        processed,
        shed,
        dead,
        ((processed + dead) / offered if offered else 1.0) * between,
        sink.restrictions.priority,
        sink.restrictions.minimum_accuracy,
    )


def shed_for(graph: Graph, step: str, rates: Shedding, tallies: Mapping[str, Tally]) -> int:
    """The rows that a step was spared."""
    counted = [producer for producer in graph.feeders.get(step, ()) if producer in tallies]
    return sum(tallies[producer].shed(rates.share(producer, step)) for producer in counted)


def account_of(graph: Graph, done: Computed, sources: Mapping[str, int], malformed: int) -> Account:
    """The account of a computed epoch, from the rows that each source gave and how many of them were malformed."""
    return Account(
        sources,
        malformed,
        sum(r.rows_out for r in done.reports if _feeds_a_sink(graph, r.step)),
        tuple(map(StepAccount.of, done.reports)),
        done.queries,
    )


def retold(manifest: Manifest) -> tuple[OperatorReport, ...]:
    """What a manifest tells of an epoch's steps: their rows and their state. Who measured times is gone."""
    steps = () if manifest.account is None else manifest.account.steps
    return tuple(_retold(step, manifest.operators.get(step.step, OperatorState())) for step in steps)


def _retold(step: StepAccount, state: OperatorState) -> OperatorReport:
    return OperatorReport(
        **asdict(step),
        state_rows=state.keys,
        state_bytes=sum(run.size_bytes for run in state.runs),
        runs=len(state.runs),
        watermark_us=state.watermark_us,
    )


def _feeds_a_sink(graph: Graph, step: str) -> bool:
    """Whether its rows are what a sink gets, alone or with those of others."""
    consumers = [graph[name] for name in graph.consumers[step]]
    return any(isinstance(c, Sink) or (isinstance(c, Union) and _feeds_a_sink(graph, c.name)) for c in consumers)
