"""How far an app is with a topic: rows taken, rows that wait, the age of the newest one, how fast rows come in."""

import json
from collections.abc import Callable, Mapping

from springtide.connectors.kafka.broker import resolved
from springtide.connectors.kafka.end_offsets import EndOffsets, Ends, EndsSeen
from springtide.connectors.kafka.source import Kafka
from springtide.metrics.load.injection import InjectionRate, Sample
from springtide.metrics.report import SourceReport

FRESH_S = 5.0
"""A broker's answer that is older says nothing about now."""
Position = dict[int, int]


def position(offset: str, topic: str) -> Position:
    """By partition: the next offset to read, from Spark's JSON."""
    return {int(partition): int(at) for partition, at in json.loads(offset).get(topic, {}).items()}


def rows_between(before: Mapping[int, int], after: Mapping[int, int]) -> int:
    """Offsets from one position to a later one; a partition that was not there before is read from its start."""
    return sum(max(0, at - before.get(partition, 0)) for partition, at in after.items())


class KafkaGauge:
    """Measures one source. Only the offsets of epochs are needed; a broker that is away leaves the rest unknown."""

    def __init__(self, name: str, spec: Kafka, initial: Callable[[], str | None]) -> None:
        self.name, self.topic = name, spec.topic
        self._initial = initial
        self._taken: Position = {}
        self._rate = InjectionRate()
        self._seen = EndsSeen()
        self._asking = EndOffsets(resolved(spec.servers), spec.topic, spec.client, self._sample)

    def close(self) -> None:
        self._asking.stop()

    def measure(self, offset: str, before: str | None, now: float) -> SourceReport:
        after = position(offset, self.topic)
        start = before if before is not None else self._initial()
        earlier = {} if start is None else position(start, self.topic)
        self._taken = after
        ends = self._seen.latest(not_before_s=now - FRESH_S)
        lag = None if ends is None else rows_between(after, ends.offsets)
        rate = self._rate.estimate() if ends is not None else None
        return SourceReport(
            self.name,
            rows_between(earlier, after),
            lag,
            self._latency_s(earlier, after, now),
            None if rate is None else rate.rows_per_s,
        )

    def _latency_s(self, before: Position, after: Position, now: float) -> float | None:
        taken = {p: at - 1 for p, at in after.items() if at > before.get(p, 0)}
        if not taken:
            return 0.0
        arrived = [self._seen.arrived_s(partition, offset) for partition, offset in taken.items()]
        known = [at for at in arrived if at is not None]
        return max(0.0, now - max(known)) if len(known) == len(arrived) else None

    def _sample(self, ends: Ends) -> None:
        self._seen.add(ends)
        taken = self._taken
        lag = {partition: end - taken.get(partition, 0) for partition, end in ends.offsets.items()}
        self._rate.add(Sample(ends.at_s, {p: taken.get(p, 0) for p in ends.offsets}, lag))
