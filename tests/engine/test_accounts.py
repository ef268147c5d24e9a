"""The account of each query, from what was counted at its sources."""

from dataclasses import fields, replace

from springtide import App, agg, sinks, sources
from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.dataflow.accuracy import shedding
from springtide.dataflow.graph import Graph
from springtide.engine.epoch.accounts import account_of, accounts, retold, shed_for
from springtide.engine.epoch.computed import Computed
from springtide.engine.shedding.sampler import Tally
from springtide.ids import Epoch, PlanVersion
from springtide.metrics.account import StepAccount
from springtide.metrics.report import OperatorReport, QueryReport


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
    tallies = {"rows": Tally(100, {0.5: 47, 1.0: 96}, {0.5: 2, 1.0: 4})}
    out, exact = accounts(graph, rates, tallies)
    assert (out.offered, out.processed, out.shed, out.dead_letters) == (100, 47, 51, 2)
    assert out.accuracy == 49 / 100, "whether a record is malformed is not known before it is looked into"
    assert (exact.processed, exact.shed, exact.dead_letters, exact.accuracy) == (96, 0, 4, 1.0)
    assert (shed_for(graph, "right", rates, tallies), shed_for(graph, "left", rates, tallies)) == (51, 0)


def test_a_row_that_was_lost_on_the_way_shows() -> None:
    """Who gets all rows sheds none: one that is missing is not told as shed by choice."""
    tallies = {"rows": Tally(100, {0.5: 47, 1.0: 95}, {0.5: 2, 1.0: 4})}
    graph = diamond()
    _, exact = accounts(graph, shedding(graph, {"out": 0.5}), tallies)
    assert (exact.processed, exact.shed, exact.accuracy) == (95, 1, 0.99)


def test_without_a_count_there_is_no_account() -> None:
    graph = diamond()
    assert accounts(graph, shedding(graph, {}), {}) == ()


def manifest() -> Manifest:
    run = BlockRef("left.000000004.0.run.x.arrow", "left", Epoch(4), 5, 1000, 0, SliceSet.parse("0-3"))
    return Manifest("app", Epoch(4), "", PlanVersion(1), 1, {"left": OperatorState((run,), 5, 9, 7)})


def test_an_account_is_all_that_a_later_driver_needs_to_tell_of_the_rows() -> None:
    reports = (
        OperatorReport("left", 90, 5, late_rows=3, malformed_rows=2, shed_rows=4, ahead_rows=6, job_s=1.5),
        OperatorReport("right", 60, 7),
    )
    query = QueryReport("out", 100, 90, 6, 4)
    account = account_of(diamond(), Computed(manifest(), reports=reports, queries=(query,)), {"rows": 100}, 1)
    assert (account.sources, account.rows_out, account.dead_letters) == ({"rows": 100}, 12, 3)
    assert account.queries == (query,)
    left, right = retold(replace(manifest(), account=account))
    assert (left.rows_in, left.rows_out, left.late_rows, left.malformed_rows, left.shed_rows) == (90, 5, 3, 2, 4)
    assert left.ahead_rows == 6
    assert (left.state_rows, left.state_bytes, left.runs, left.watermark_us) == (5, 1000, 1, 7)
    assert (left.job_s, left.instances) == (0.0, ()), "who measured that is gone"
    assert (right.rows_in, right.rows_out, right.state_rows) == (60, 7, 0)
    assert retold(manifest()) == (), "a release without accounts wrote it"


def test_every_count_of_rows_in_a_steps_report_is_in_its_account() -> None:
    """Else a count that is added one day is lost when an epoch is published again."""
    counts = {each.name for each in fields(OperatorReport) if each.name.startswith("rows_") or "_rows" in each.name}
    assert counts - {"state_rows"} <= {each.name for each in fields(StepAccount)}, "state is in the manifest"
