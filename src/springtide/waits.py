"""Waiting, always with an end."""

import threading

from springtide.errors import SpringtideError
from springtide.logs import room_logger

LET_GO_S = 60.0
"""How long a thread may take to end once it is told, unless it is known to take longer."""

log = room_logger(__name__)


class WaitedTooLong(SpringtideError, TimeoutError):
    """Something that should have come has not."""

    def __init__(self, what: str, waited_s: float, remedy: str) -> None:
        super().__init__(what, waited_s, remedy)
        self.what, self.waited_s, self.remedy = what, waited_s, remedy

    def __str__(self) -> str:
        return f"waited {self.waited_s:g} s for {self.what}, which did not come. {self.remedy}"


def join(thread: threading.Thread, within_s: float, remedy: str) -> None:
    """Wait for a thread to end; WaitedTooLong if it does not."""
    thread.join(within_s)
    if thread.is_alive():
        raise WaitedTooLong(f"thread {thread.name} to end", within_s, remedy)


def let_go(thread: threading.Thread, within_s: float = LET_GO_S) -> None:
    """Wait for a thread that was told to end; one that does not is left behind, with a line in the log.

    For threads that are daemons and can do no harm any more: what comes after them matters more.
    """
    try:
        join(thread, within_s, "It is left behind, and ends with the process")
    except WaitedTooLong as late:
        log.warning("%s", late)
