"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

POLL_S = 0.05
Found = TypeVar("Found")


def wait_until(
    what: str, condition: Callable[[], Found | None], within_s: float, story: Callable[[], str] = lambda: ""
) -> Found:
    """What the condition gives once it gives something; fails with the story if that takes too long."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within_s:.0f} s for {what}:\n{story()}")
        time.sleep(POLL_S)
    return found
