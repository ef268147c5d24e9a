"""Waits for running apps; Ctrl-C ends them after the epochs in flight."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
    [reports], stopped = wait_or_stop_all([running], on_stop, clock)
    return reports, stopped


def wait_or_stop_all(
    runnings: Sequence[Running], on_stop: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> tuple[list[list[EpochReport]], bool]:
    """The same for several apps at once; if one fails, the others are stopped."""
    found: dict[Running, list[EpochReport]] = {}
    left = list(runnings)
    with stopped_on_failure(left), _asked_to_stop(clock) as asked:
        while left and not asked.is_set():
            for running in list(left):
                reports = _ended(running, left)
                if reports is not None:
                    found[running] = reports
        stopped = bool(left)
        if stopped:
            on_stop()
        while left:
            running = left.pop()
            found[running] = running.stop()
    return [found[running] for running in runnings], stopped


@contextmanager
def stopped_on_failure(started: list[Running]) -> Iterator[None]:
    """Apps that were started are stopped if what is done here fails."""
    try:
        yield
    except BaseException:
        for running in started:
            with suppress(Exception):
                running.stop()
        raise


def _ended(running: Running, left: list[Running]) -> list[EpochReport] | None:
    """An app's reports if it ends within a moment; it is left no more then, nor if it fails."""
    try:
        reports = running.wait(LOOK_S)
    except TimeoutError as error:
        if error.errno is not None:  # The app failed with a time-out of its own.
            left.remove(running)
            raise
        return None
    except BaseException:
        left.remove(running)
        raise
    left.remove(running)
    return reports


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
