"""Waits for running apps; Ctrl-C ends them after the epochs in flight."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from springtide.cli.shared.signals import EndedBySignal, first_signal_asks
from springtide.engine.lifecycle.running import Running
from springtide.engine.spark.session import SparkDied
from springtide.logs import room_logger
from springtide.metrics.report import EpochReport

LOOK_S = 0.2

log = room_logger(__name__)


def wait_or_stop(
    running: Running, on_stop: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> tuple[list[EpochReport], bool]:
    """The app's reports once it has ended, and whether a person ended it; raises what made it fail.

    The first SIGINT, SIGTERM or SIGHUP lets the epoch in flight finish, a second one ends the process.
    """
    [reports], stopped = wait_or_stop_all([running], on_stop, clock)
    return reports, stopped


def wait_or_stop_all(
    runnings: Sequence[Running], on_stop: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> tuple[list[list[EpochReport]], bool]:
    """The same for several apps at once; if one fails, the others are stopped."""
    found: dict[Running, list[EpochReport]] = {}
    left = list(runnings)
    with stopped_on_failure(left), first_signal_asks(clock) as asked:
        try:
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
        except SparkDied as error:
            if asked.is_set():
                raise EndedBySignal(asked.number) from error
            raise
    return [found[running] for running in runnings], stopped


@contextmanager
def stopped_on_failure(started: list[Running]) -> Iterator[None]:
    """Apps that were started are stopped if what is done here fails."""
    try:
        yield
    except BaseException:
        for running in started:
            try:
                running.stop()
            except Exception as error:
                log.warning("an app could not be stopped in good order: %s", error)
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
