"""The examples in docstrings do what they show, and what people write apps with has some."""

import doctest
import importlib
import inspect
from datetime import datetime, timedelta
from typing import Any

import pytest

from springtide import App, agg, sinks, sources
from springtide.dataflow.keyed_stream import KeyedStream
from springtide.dataflow.query import Query
from springtide.dataflow.stream import Stream
from springtide.state.aggregates.base import Aggregate
from springtide.testing import StepHarness

MODULES = [
    "app",
    "blocks.slice_set",
    "connectors.generator.rates",
    "connectors.memory",
    "dataflow.duration",
    "dataflow.keyed_stream",
    "dataflow.meeting",
    "dataflow.query",
    "dataflow.stream",
    "dataflow.ttl",
    "java_home",
    "state.aggregates.functions",
    "state.aggregates.row_functions",
    "state.aggregates.sketch_functions",
    "state.timers",
    "testing",
]
LEFT_OUT = {"reduce_batches", "co_reduce_batches"}
"""Their tables would make an example longer than the promise: `examples/sessions.py` is one."""


def shown(**aggregates: Aggregate) -> dict[str, Any]:
    """What aggregates give for one key with four prices, and the times of these."""
    app = App("prices")
    rows = app.source("rows", sources.generator(1))
    rows.key_by("user").aggregate("step", **aggregates).sink("out", sinks.noop())
    prices = [3, 8, 1, None]
    harness = StepHarness(app, "step", {"user": str, "price": int, "at": int})
    (row,) = harness.epoch([{"user": "ann", "price": price, "at": at} for at, price in enumerate(prices, 1)])
    return {name: value for name, value in row.items() if name != "user"}


def words() -> dict[str, Any]:
    """What the examples take for granted."""
    app = App("clicks")
    clicks = app.source("clicks", sources.generator(10))
    known = {
        "agg": agg,
        "sinks": sinks,
        "sources": sources,
        "datetime": datetime,
        "timedelta": timedelta,
        "StepHarness": StepHarness,
    }
    return {"app": app, "clicks": clicks, "shown": shown, **known}


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_show(name: str) -> None:
    module = importlib.import_module(f"springtide.{name}")
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    found = [each for each in finder.find(module, module.__name__) if each.examples]
    assert found, "there are some"
    for example in found:
        example.globs.update(words())
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("owner", [Stream, KeyedStream, Query])
def test_every_way_to_write_a_step_has_an_example(owner: type) -> None:
    for name, method in inspect.getmembers(owner, inspect.isfunction):
        if not name.startswith("_") and name not in LEFT_OUT:
            assert ">>> " in (method.__doc__ or ""), name


def test_every_aggregate_has_an_example() -> None:
    for name in agg.__all__:
        if name.islower():
            assert ">>> " in (getattr(agg, name).__doc__ or ""), name
