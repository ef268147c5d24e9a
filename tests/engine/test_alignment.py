"""Which sources are held back, and what a query is told of it: without Spark."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from springtide import App, agg, sinks, sources
from springtide.blocks.manifest import OperatorState
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Graph
from springtide.engine.epoch.alignment import held_back
from springtide.engine.lifecycle.read_limits import ReadLimits
from springtide.state.logic import BEGINNING_US

SECOND = 1_000_000


def meeting(**of_slow: Any) -> Graph:
    app = App("app")
    fast = app.source("fast", sources.generator(1), align="1 minute").key_by("key")
    slow = app.source("slow", sources.generator(1), **of_slow).key_by("key")
    fast.join("both", slow, time=("due_time", "due_time"), window="1 hour").sink("out", sinks.memory())
    return app.graph()


def reached(fast_s: float, slow_s: float | None, *, seen_s: float = 0.0) -> dict[str, OperatorState]:
    times = (round(fast_s * SECOND), BEGINNING_US if slow_s is None else round(slow_s * SECOND))
    return {"both": OperatorState(newest_us=times, seen_us=(0, round(seen_s * SECOND)))}


@pytest.mark.parametrize(("fast_s", "held"), [(100, False), (160, False), (160.000001, True), (1000, True)])
def test_a_source_waits_while_it_is_further_ahead_than_it_may_be(fast_s: float, held: bool) -> None:
    assert list(held_back(meeting(), reached(fast_s, 100), 0)) == ["fast"] * held


def test_it_says_of_whom_it_is_ahead() -> None:
    because = held_back(meeting(), reached(200, 100), 0)["fast"].because
    assert because == "it is 100.0 s ahead of input 'slow' of step 'both'"
    assert "has had no row yet" in held_back(meeting(), reached(200, None), 0)["fast"].because


def test_nobody_waits_for_a_source_that_is_idle() -> None:
    graph = meeting(idle="30 seconds")
    assert held_back(graph, reached(200, 100, seen_s=10), 39 * SECOND)
    assert not held_back(graph, reached(200, 100, seen_s=10), 40 * SECOND)


@pytest.mark.parametrize("other_s", [100, None])
def test_a_source_does_not_wait_for_a_stream_that_it_feeds_itself(other_s: float | None) -> None:
    app = App("app")
    rows = app.source("rows", sources.generator(1), align="1 minute")
    some = rows.filter("some", "key > 3").key_by("key")
    rows.key_by("key").join("both", some, time=("due_time", "due_time"), window="1 hour").sink("out", sinks.memory())
    assert held_back(app.graph(), reached(1000, other_s), 0) == {}


def test_nobody_waits_before_there_is_anything_or_alone() -> None:
    assert held_back(meeting(), {}, 0) == {}
    app = App("app")
    rows = app.source("rows", sources.generator(1), align="1 minute").key_by("key")
    rows.window("due_time", "1 hour").aggregate("counts", n=agg.count()).sink("out", sinks.memory())
    assert held_back(app.graph(), {"counts": OperatorState(newest_us=(10**15,))}, 0) == {}


def test_a_source_that_cannot_wait_is_refused() -> None:
    with pytest.raises(BadGraph, match="align= for a source that can wait"):
        App("app").source("rows", sources.stream(lambda spark: spark), align="1 minute")  # type: ignore[arg-type, return-value]


def limits() -> tuple[ReadLimits, list[tuple[str, Mapping[int, int | None]]]]:
    told: list[tuple[str, Mapping[int, int | None]]] = []
    return ReadLimits(["a", "b"], lambda query, rows: told.append((cast(Any, query), rows))), told


def test_what_is_held_back_gets_what_was_admitted_once_it_goes_on() -> None:
    reads, told = limits()
    query, other = cast(Any, "query"), cast(Any, "other")
    reads.hold(query, [])
    reads.hold(query, ["a"])
    reads.hold(query, ["a"])
    reads.admit(query, {"a": 5, "b": 7})
    reads.hold(query, [])
    assert told == [("query", {0: 0}), ("query", {0: 0, 1: 7}), ("query", {0: 5})]
    reads.hold(query, ["b"])
    reads.hold(other, ["b"])
    assert told[3:] == [("query", {1: 0}), ("other", {0: 5, 1: 0})], "another query gets the same limits"


def test_a_source_without_a_limit_gets_its_own_back() -> None:
    reads, told = limits()
    query = cast(Any, "query")
    reads.hold(query, ["b"])
    reads.hold(query, [])
    assert told == [("query", {1: 0}), ("query", {1: None})]
