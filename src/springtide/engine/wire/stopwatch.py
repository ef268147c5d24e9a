"""Splits time into named parts."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up how long each part took; `clock` is an argument so that tests can advance it."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.parts[name] = self.parts.get(name, 0.0) + self.clock() - start

    def __getitem__(self, name: str) -> float:
        return self.parts.get(name, 0.0)
