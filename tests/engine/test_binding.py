"""A graph meets its columns: what does not fit is named before the first epoch, without a row or a Spark."""

from typing import Any

import pyarrow as pa
import pytest

from springtide import App, agg, sinks, sources
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.dataflow.graph import Graph, Keyed, Sink
from springtide.engine.epoch.binding import BoundGraph, _bind_keyed, _check_estimates, _check_sink
from springtide.engine.worker.parcel import INSTANCE
from springtide.engine.worker.prepare import HASH

ROWS = pa.schema([("word", pa.string()), ("price", pa.float64())])
SLICES = 16


def counting(*key: str, utility: str | None = None, **aggregates: Any) -> Graph:
    app = App("app")
    rows = app.source("rows", sources.generator(1), utility=utility)
    counted = rows.key_by(*key or ("word",)).aggregate("count", **aggregates or {"n": agg.count()})
    counted.sink("out", sinks.console(top=3, by="n"))
    return app.graph()


def keyed(graph: Graph) -> Keyed:
    (node,) = graph.of(Keyed)
    return node


def test_a_keyed_step_knows_its_columns() -> None:
    graph = counting("word", n=agg.count(), paid=agg.sum("price"))
    logic = _bind_keyed(keyed(graph), ROWS, SLICES)
    assert logic.output.names == ["word", "n", "paid"]
    assert logic.output.field("paid").type == pa.float64()


@pytest.mark.parametrize("name", [HASH, INSTANCE, HASH.upper()])
def test_columns_that_are_used_on_the_way_are_refused(name: str) -> None:
    with pytest.raises(BadGraph, match=f"'count'.*{name}"):
        _bind_keyed(keyed(counting()), ROWS.append(pa.field(name, pa.int64())), SLICES)


def test_a_key_that_is_named_like_columns_on_the_way_is_refused() -> None:
    with pytest.raises(BadGraph, match=r"'count'.*no key named '__own'.*\['__own_0'\]"):
        _bind_keyed(keyed(counting("__own_0")), pa.schema([("__own_0", pa.string())]), SLICES)


def test_a_key_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(BadGraph, match=r"'count'.*\['word', 'price'\].*\['wrod'\]"):
        _bind_keyed(keyed(counting("wrod")), ROWS, SLICES)


def test_an_aggregate_of_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(BadGraph, match=r"'count'.*paid=.*\['word', 'price'\].*'prize'"):
        _bind_keyed(keyed(counting("word", paid=agg.sum("prize"))), ROWS, SLICES)


def test_a_key_of_a_kind_that_has_no_order_is_refused() -> None:
    with pytest.raises(StepFailed, match=r"'count'.*tags"):
        _bind_keyed(keyed(counting("tags")), pa.schema([("tags", pa.map_(pa.string(), pa.string()))]), SLICES)


def test_a_sink_gets_the_columns_that_it_goes_by() -> None:
    (sink,) = counting().of(Sink)
    _check_sink(sink, pa.schema([("n", pa.int64())]))
    with pytest.raises(BadGraph, match=r"'out'.*\['word', 'price'\] in by=.*'n'"):
        _check_sink(sink, ROWS)


def test_estimates_are_refused_where_nothing_is_left_to_chance() -> None:
    chance = counting("word", n=agg.count(estimate=True))
    _check_estimates(keyed(chance), chance)
    ranked = counting("word", utility="price", n=agg.count(estimate=True), m=agg.count())
    with pytest.raises(BadGraph, match=r"'count'.*source 'rows'.*\['n'\]"):
        _check_estimates(keyed(ranked), ranked)


def test_what_must_not_change_between_two_starts_is_told_by_step() -> None:
    def told(**aggregates: Any) -> dict[str, Any]:
        graph = counting("word", **aggregates)
        logic = _bind_keyed(keyed(graph), ROWS, SLICES)
        return BoundGraph(graph, {"rows": ROWS}, {"count": logic}).describe()

    assert set(told(n=agg.count())) == {"count"}
    assert told(n=agg.count()) == told(n=agg.count())
    assert told(n=agg.count()) != told(n=agg.sum("price"))
