"""When an app that ends with its input asks for one more epoch: without Spark."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from springtide import App, agg, sinks, sources
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.engine.epoch.closing import Closing, due_steps
from springtide.state.clock import Clock, EventTime, WallTime


class Ending:
    """An app of three keyed steps in a row, the last of which goes by a clock; it counts the epochs asked for."""

    def __init__(self, clock: Clock | None) -> None:
        app = App("ending")
        stream = app.source("rows", sources.generator(1))
        for name in ("first", "second", "last"):
            stream = stream.key_by("key").aggregate(name, n=agg.count())
        stream.sink("out", sinks.noop())
        clocks = {"first": None, "second": None, "last": clock}
        logics = {step: SimpleNamespace(clock=clock) for step, clock in clocks.items()}
        self.bound = cast(Any, SimpleNamespace(graph=app.graph(), logics=logics))
        self.nudges = 0
        self.closing = Closing(self.bound, self._nudge)

    def _nudge(self) -> None:
        self.nudges += 1


def head(newest_us: int) -> Manifest:
    """After an epoch whose newest row is of this time; something expires at 100."""
    state = OperatorState(newest_us=(newest_us,), watermark_us=0, due_us=100)
    return Manifest("ending", 0, "", 1, 1, {"last": state})


@pytest.mark.parametrize(("newest_us", "epochs"), [(99, 0), (100, 1)])
def test_an_epoch_is_asked_for_if_the_last_rows_have_made_something_due(newest_us: int, epochs: int) -> None:
    ending = Ending(EventTime())
    ending.closing.ask(head(newest_us), afresh=True)
    assert ending.nudges == epochs


def test_nothing_is_asked_for_before_the_first_epoch() -> None:
    ending = Ending(EventTime())
    ending.closing.ask(None, afresh=True)
    assert ending.nudges == 0


def test_the_wall_clock_asks_for_nothing() -> None:
    ending = Ending(WallTime())
    assert due_steps(ending.bound, head(0)) == ["last"]
    ending.closing.ask(head(0), afresh=True)
    assert ending.nudges == 0


def test_there_is_an_end_though_epochs_without_input_make_more_due() -> None:
    """As if timers by the wall clock fed the last step."""
    ending = Ending(EventTime())
    for epoch in range(10):
        ending.closing.ask(head(100), afresh=epoch == 0)
    assert ending.nudges == 3, "one for each step in a row"
    ending.closing.ask(head(100), afresh=True)
    assert ending.nudges == 4, "new rows begin anew"
