"""Where contestants meet."""

import os
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from springtide.bench.harness.arena import Arena, arena


def _sleep_long(place: Arena) -> None:
    with suppress(BrokenProcessPool):
        place.call("slow", time.sleep, 600)


def _interrupted(contestants: list[int], waiting: list[Thread]) -> None:
    """A benchmark that is interrupted while a contestant is at work."""
    with arena("test") as place:
        contestants.append(place.call("slow", os.getpid))
        waiting.append(Thread(target=_sleep_long, args=(place,)))
        waiting[0].start()
        raise KeyboardInterrupt


def test_an_interrupted_benchmark_does_not_wait_for_its_contestants() -> None:
    contestants: list[int] = []
    waiting: list[Thread] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupted(contestants, waiting)
    waiting[0].join(10)
    assert not waiting[0].is_alive()
    assert not Path(f"/proc/{contestants[0]}").exists()
