"""Where contestants meet."""

import os
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from springtide.bench.arena import Arena, arena


def _sleep_long(place: Arena) -> None:
    with suppress(BrokenProcessPool):
        place.call("slow", time.sleep, 600)


def test_an_interrupted_benchmark_does_not_wait_for_its_contestants() -> None:
    with pytest.raises(KeyboardInterrupt), arena("test") as place:
        contestant = place.call("slow", os.getpid)
        waiting = Thread(target=_sleep_long, args=(place,))
        waiting.start()
        raise KeyboardInterrupt
    waiting.join(10)
    assert not waiting.is_alive()
    assert not Path(f"/proc/{contestant}").exists()
    assert not place.scratch.exists()
