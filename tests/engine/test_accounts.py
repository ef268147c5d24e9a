"""The account of each query, from what was counted at its sources."""

from springtide import App, agg, sinks, sources
from springtide.dataflow.economy import shedding
from springtide.dataflow.graph import Graph
from springtide.engine.accounts import accounts, shed_for
from springtide.engine.shedder import Tally


def diamond() -> Graph:
    """Two branches of one source for one query, and another query on one of the branches alone."""
    app = App("app")
    rows = app.source("rows", sources.generator(10))
    left = rows.key_by("key").aggregate("left", n=agg.count())
    right = rows.key_by("key").aggregate("right", n=agg.count())
    left.union("both", right).sink("out", sinks.noop()).with_minimum_accuracy(0.1)
    left.sink("exact", sinks.noop())
    return app.graph()


def test_a_row_that_only_one_branch_gets_counts_as_shed() -> None:
    graph = diamond()
    rates = shedding(graph, {"out": 0.5})
    tallies = {"rows": Tally(100, 4, {0.5: 47, 1.0: 96}, {0.5: 49, 1.0: 0})}
    out, exact = accounts(graph, rates, tallies)
    assert (out.offered, out.processed, out.shed, out.dead_letters) == (100, 47, 49, 4)
    assert out.accuracy == 47 / 96
    assert (exact.processed, exact.shed, exact.accuracy) == (96, 0, 1.0)
    assert (shed_for(graph, "right", rates, tallies), shed_for(graph, "left", rates, tallies)) == (49, 0)


def test_a_row_that_was_lost_on_the_way_shows() -> None:
    tallies = {"rows": Tally(100, 4, {0.5: 47, 1.0: 95}, {0.5: 48, 1.0: 0})}
    graph = diamond()
    for query in accounts(graph, shedding(graph, {"out": 0.5}), tallies):
        assert query.offered - query.processed - query.shed - query.dead_letters == 1


def test_without_a_count_there_is_no_account() -> None:
    graph = diamond()
    assert accounts(graph, shedding(graph, {}), {}) == ()
