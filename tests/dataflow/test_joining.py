"""Steps with several inputs, as they are written: what is refused, and how their rows come on one way."""

from typing import Any

import pyarrow as pa
import pytest

from springtide import App, sinks, sources
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Sides
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.errors import BadValue
from springtide.state.sides import rows_of, side_schemas, sided
from springtide.testing import StepHarness

FIELDS: dict[str, Any] = {"state": {"n": int}, "output": {"k": int, "n": int}}


def keyed(app: App, name: str, *key: str) -> KeyedStream:
    return app.source(name, sources.generator(1)).key_by(*(key or ("k",)))


def count(key: dict[str, Any], *rows_and_state: Any) -> tuple[Any, Any]:
    *rows, state = rows_and_state
    n = (state or {"n": 0})["n"] + sum(10**place * len(some) for place, some in enumerate(rows))
    return {"n": n}, [{"k": key["k"], "n": n}]


def test_three_streams_meet_in_one_step() -> None:
    app = App("app")
    first, second, third = (keyed(app, name) for name in ("first", "second", "third"))
    first.co_reduce("met", second, third, count, **FIELDS).sink("out", sinks.memory())
    graph = app.graph()
    (way,) = graph.of(Sides)
    assert (way.parents, graph["met"].parents, graph.feeders["met"]) == (
        ("first", "second", "third"),
        (way.name,),
        {"first", "second", "third"},
    )
    met = StepHarness(app, "met", [{"k": int}, {"k": int, "x": str}, {"k": int}])
    assert met.epoch([{"k": 1}], [{"k": 1, "x": "a"}, {"k": 1, "x": "b"}], [{"k": 1}]) == [{"k": 1, "n": 121}]
    assert met.epoch([], [], [{"k": 1}]) == [{"k": 1, "n": 221}]


def test_what_is_joined_may_be_joined_again() -> None:
    app = App("app")
    first, second, third = (keyed(app, name) for name in ("first", "second", "third"))
    first.join("two", second).key_by("k").join("three", third).sink("out", sinks.memory())
    assert [[node.name for node in level] for level in app.graph().levels()] == [["two"], ["three"]]


def test_what_cannot_be_meant_is_refused_with_the_step() -> None:
    app, other = App("app"), App("other")
    left, right = keyed(app, "left"), keyed(app, "right")
    refused = [
        ("another app", lambda: left.join("step", keyed(other, "elsewhere"))),
        ("a keyed stream", lambda: left.join("step", app.source("rows", sources.generator(1)))),  # type: ignore[arg-type]
        ("keys of 1 columns", lambda: left.join("step", keyed(app, "two", "k", "j"))),
        ("no other stream", lambda: left.co_reduce("step", count, **FIELDS)),
        ("then a function", lambda: left.co_reduce("step", right, **FIELDS)),
    ]
    for told, write in refused:
        with pytest.raises(BadGraph, match=told) as error:
            write()
        assert error.value.step == "step"


def test_rows_find_their_side_again() -> None:
    left = pa.table({"k": [1, 2], "x": ["a", None]})
    right = pa.table({"id": [3], "k": [True], "y": [0.5]})
    rows = sided([left, right], [["k"], ["id"]])
    assert rows.column("k").to_pylist() == [1, 2, 3], "the first side's key"
    assert [schema.names for schema in side_schemas(rows.schema)] == [["x"], ["k", "y"]]
    for side, which, table in ((0, [0, 1], left.select(["x"])), (1, [2], right.select(["k", "y"]))):
        found, own = rows_of(rows, side)
        assert (found.tolist(), own.to_pylist()) == (which, table.to_pylist())


def test_a_harness_wants_the_rows_of_every_input() -> None:
    app = App("app")
    keyed(app, "left").join("both", keyed(app, "right")).sink("out", sinks.noop())
    both = StepHarness(app, "both", [{"k": int}, {"k": int}])
    with pytest.raises(BadGraph, match="the rows of 2 inputs, got those of 1"):
        both.epoch([{"k": 1}])
    for columns in ({"k": int}, [{"k": int}]):
        with pytest.raises(BadGraph, match="the columns of 2 inputs"):
            StepHarness(app, "both", columns)


def test_a_name_that_would_stand_for_two_columns_is_refused() -> None:
    app = App("app")
    keyed(app, "left").join("both", keyed(app, "right"), suffix="_2").sink("out", sinks.noop())
    with pytest.raises(BadValue, match=r"\['x_2'\] would be there twice"):
        StepHarness(app, "both", [{"k": int, "x": int, "x_2": int}, {"k": int, "x": int}])
