"""Drives that are sent to Kafka when they fall due, whoever keeps up, and when that was."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from springtide.bench.experiments.shed.overload import Arrivals
from springtide.connectors.generator import rates
from springtide.testing.injector import Injector
from springtide.workloads.taxi import record

SAMPLE_S = 0.05
MADE = 20_000
"""Different drives of each topic; they come again and again."""


class Sending:
    """Sends drives to all topics, at one rate after the other, and remembers when."""

    def __init__(self, servers: str, topics: Mapping[str, str]) -> None:
        self.servers, self.topics = servers, topics
        self._done: list[dict[str, Injector]] = []
        self._records = [[record(number, seed) for number in range(MADE)] for seed in range(len(topics))]
        """By topic: to make a drive takes longer than to send it, and while drives come the cores are the app's."""

    @property
    def sent(self) -> int:
        return sum(injector.sent for injectors in self._done for injector in injectors.values())

    @property
    def finished(self) -> bool:
        """Whether the last limit is reached."""
        return all(injector.finished for injector in self._done[-1].values())

    def at(self, rate: rates.Rate, limit: int | None = None) -> ExitStack:
        """While the context is open; `limit` is the drives of each topic."""
        stack = ExitStack()
        injectors = {}
        for seed, (source, topic) in enumerate(self.topics.items()):
            first = sum(earlier[source].sent for earlier in self._done)
            value = partial(_numbered, self._records[seed], first)
            injectors[source] = stack.enter_context(Injector(self.servers, topic, rate, value, limit=limit))
        self._done.append(injectors)
        return stack

    def arrivals(self) -> dict[str, Arrivals]:
        """By source: what it was sent."""
        found = {}
        for source in self.topics:
            at, rows = [self._done[0][source].began_s], [0.0]
            ends = [*(injectors[source].began_s for injectors in self._done[1:]), time.time()]
            for injectors, end_s in zip(self._done, ends, strict=True):
                injector, before = injectors[source], rows[-1]
                times = np.arange(injector.began_s, end_s, SAMPLE_S)
                at += times.tolist()
                rows += [before + injector.sent_by(float(when)) for when in times]
            found[source] = Arrivals(np.array(at), np.array(rows))
        return found


def _numbered(records: Sequence[bytes], first: int, row: int) -> bytes:
    return records[(first + row) % len(records)]
