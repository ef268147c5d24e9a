"""An app that ends with its input first closes what its last rows have made due."""

import time
from collections.abc import Callable

from springtide.blocks.manifest import Manifest
from springtide.engine.epoch.binding import BoundGraph
from springtide.engine.epoch.event_time import may_expire
from springtide.state.clock import EventTime


def due_steps(bound: BoundGraph, head: Manifest | None) -> list[str]:
    """The keyed steps in which an epoch without rows, after `head` and now, might close something."""
    states = {} if head is None else head.operators
    now_us = round(time.time() * 1e6)
    return [
        step
        for step, logic in bound.logics.items()
        if step in states and may_expire(states[step], logic.clock, now_us, bound.graph.idle_us(step))
    ]


class Closing:
    """Asks for epochs, which come without rows once the input has ended, until nothing is due by event time.

    Each closes what is due in a step; what that gives to the next step may make something due there, for the epoch
    after it. So the last rows are done with after as many epochs as there are keyed steps in a row. More are never
    asked for: timers by the wall clock may feed a window without an end.
    """

    def __init__(self, bound: BoundGraph, nudge: Callable[[], None]) -> None:
        self._bound, self._nudge = bound, nudge
        self._left = self._most = len(bound.graph.levels())

    def ask(self, head: Manifest | None, *, afresh: bool) -> None:
        """Ask for an epoch if one might close something; `afresh` if `head` had input, or no epoch has run yet."""
        if afresh:
            self._left = self._most
        if self._left and any(isinstance(self._bound.logics[s].clock, EventTime) for s in due_steps(self._bound, head)):
            self._left -= 1
            self._nudge()
