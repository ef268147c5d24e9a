"""Keyed streams that are cut into windows: by time, by silence, by a number of rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from springtide.dataflow.duration import Duration
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.operations import Aggregation, CountWindows, Operation, Sessions
from springtide.dataflow.ttl import Ttl, remembered
from springtide.ids import valid_name
from springtide.state.aggregates import Aggregate
from springtide.state.aggregates.estimate import result_names
from springtide.state.session import Gap
from springtide.state.window import Window

if TYPE_CHECKING:
    from springtide.dataflow.stream import Stream

Build = Callable[[str, Operation], "Stream"]
"""Adds a keyed step of this name; its rows."""


class SessionStream:
    """A keyed stream cut into sessions."""

    def __init__(self, keyed: Build, gap: Gap) -> None:
        self._keyed = keyed
        self.gap = gap

    def aggregate(self, name: str, **aggregates: Aggregate) -> "Stream":
        """Aggregates by key and session: updates while a session is open, one final row when it is over.

        The rows have the columns `session_start`, the time of its first row, `session_end`, the time of its last row
        and a gap, and `final` beside key and aggregates. Open sessions may become one, so an update may stand for a
        part of a session; a final row stands for all of it, and comes once.
        """
        return self._keyed(name, Sessions(checked_aggregates(name, aggregates), self.gap))


class CountWindowStream:
    """A keyed stream cut into windows of a number of rows."""

    def __init__(self, keyed: Build, size: int) -> None:
        self._keyed = keyed
        self.size = size

    def aggregate(self, name: str, *, ttl: Duration | Ttl | None = None, **aggregates: Aggregate) -> "Stream":
        """Aggregates by key and window: updates while a window is open, one final row when it is full.

        The rows have the columns `window_number`, from 0, and `final` beside key and aggregates. With `ttl`, a key is
        forgotten that long after its last row, with what its open window had.
        """
        return self._keyed(name, remembered(name, CountWindows(checked_aggregates(name, aggregates), self.size), ttl))


class WindowedStream:
    """A keyed stream cut into event-time windows."""

    def __init__(self, keyed: Build, window: Window) -> None:
        self._keyed = keyed
        self.window = window

    def aggregate(self, name: str, **aggregates: Aggregate) -> "Stream":
        """Aggregates by key and window: updates while a window is open, one final row when it closes.

        The rows have the columns `window_start`, `window_end` and `final` beside key and aggregates.
        """
        return self._keyed(name, Aggregation(checked_aggregates(name, aggregates), self.window))


def checked_aggregates(name: str, aggregates: dict[str, Aggregate]) -> dict[str, Aggregate]:
    """The aggregates of a step; BadGraph if there are none, or if two of their results have one name."""
    if not aggregates:
        raise BadGraph(name, "at least one aggregate, such as n=agg.count()", "none")
    for result, aggregate in aggregates.items():
        valid_name("the result", result)
        if not callable(getattr(aggregate, "combine", None)):
            raise BadGraph(name, f"{result}= an aggregate such as agg.count()", repr(aggregate))
    columns = [column for result, aggregate in aggregates.items() for column in result_names(result, aggregate)]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise BadGraph(name, "results with names of their own, those that an estimate adds among them", repr(twice))
    return aggregates
