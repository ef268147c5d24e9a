"""Waits for a running app; Ctrl-C ends it after the epoch in flight."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from springtide.engine.running import Running
from springtide.metrics.report import EpochReport

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_S = 0.2
SAME_S = 1.0
"""Signals this close together are one: timeout(1) and its like pass on what the terminal has sent already."""


def wait_or_stop(
    running: Running, on_stop: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> tuple[list[EpochReport], bool]:
    """The app's reports once it has ended, and whether a person ended it; raises what made it fail.

    The first SIGINT, SIGTERM or SIGHUP lets the epoch in flight finish, a second one interrupts.
    """
    with _asked_to_stop(clock) as asked:
        while not asked.is_set():
            try:
                return running.wait(LOOK_S), False
            except TimeoutError as error:
                if error.errno is not None:  # The app failed with a time-out of its own.
                    raise
        on_stop()
        return running.stop(), True


@contextmanager
def _asked_to_stop(clock: Callable[[], float]) -> Iterator[Event]:
    """An event that the first signal sets.

    PySpark's own handler would cancel the jobs of the epoch in flight, and an exception in the middle of
    a call into the JVM would leave its answer unread for the next call.
    """
    asked = Event()
    first_at = 0.0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first_at
        if not asked.is_set():
            first_at = clock()
            asked.set()
        elif clock() - first_at > SAME_S:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
