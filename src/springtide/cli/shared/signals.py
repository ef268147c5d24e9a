"""What SIGINT, SIGTERM and SIGHUP do: they raise, they end the process at once, or the first one asks.

Raising in the middle of a call into the JVM would leave its answer unread for the next call. So while Spark starts and
while an app runs nothing is raised: the process asks the app to stop, or ends like one that was killed. That is safe
at any moment, as what is true is in a manifest.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from springtide.errors import SpringtideError
from springtide.scratch import remove_all_scratch

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_S = 1.0
"""Signals this close together are one: timeout(1) and its like pass on what the terminal has sent already."""

_stderr = 2
"""Where a last line goes: the process's own stderr, whatever it is redirected to meanwhile."""

SHOW_CURSOR = b"\x1b[?25h"
"""A live view hides the terminal's cursor, and can't show it again after this."""

Handler = Callable[[int, FrameType | None], object]


class Interrupted(KeyboardInterrupt):
    """A signal ended a command that had nothing to finish."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell has it."""
        return 128 + self.number

    def __str__(self) -> str:
        return "interrupted" if self.number == signal.SIGINT else f"ended by {signal.Signals(self.number).name}"


class EndedBySignal(SpringtideError):
    """Spark was ended by the signal that asked the app to stop: it was sent to every process of the group."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.exit_code = 128 + number

    def __str__(self) -> str:
        return (
            f"{signal.Signals(self.number).name} went to the whole process group and ended Spark as well. "
            "The epoch in flight was given up; the next start runs it again, and nothing is lost"
        )


class Asked(Event):
    """Set by the first signal; `number` says which it was."""

    number = signal.SIGINT


def raise_on_signals() -> None:
    """From now on a signal raises Interrupted in the main thread."""
    global _stderr
    _stderr = os.dup(2)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    for number in SIGNALS:
        signal.signal(number, interrupt)


@contextmanager
def end_on_signals(meanwhile: str) -> Iterator[None]:
    """A signal that comes in this block ends the process at once, with one line that says what was going on."""
    with _handled_by(lambda number, _: end_now(number, f"{Interrupted(number)} {meanwhile}; nothing was lost")):
        yield


@contextmanager
def first_signal_asks(
    clock: Callable[[], float] = time.monotonic, end: Callable[[int, str], object] | None = None
) -> Iterator[Asked]:
    """An event that the first signal sets; a second one ends the process."""
    asked = Asked()
    first_at = 0.0
    end = end or end_now

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first_at
        if not asked.is_set():
            first_at = clock()
            asked.number = signal.Signals(number)
            asked.set()
        elif clock() - first_at > SAME_S:
            end(number, f"{Interrupted(number)} at once: the epoch in flight is run again at the next start")

    with _handled_by(ask):
        yield asked


def end_now(number: int, line: str) -> None:
    """End the process as the signal would have, after one line. Spark's JVM ends when its parent is gone."""
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), SHOW_CURSOR)
    os.write(_stderr, f"\n{line}\n".encode())
    remove_all_scratch()
    os._exit(128 + number)


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
