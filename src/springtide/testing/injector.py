"""A data injector: writes rows to a topic when they fall due, whoever keeps up, and knows what it sent when."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from types import TracebackType

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message, Producer

from springtide.connectors.generator.rates import Rate

TICK_S = 0.005
FLUSH_S = 30.0
SETTINGS = {
    "log_level": 0,
    "linger.ms": 2,
    "acks": "all",
    "enable.idempotence": True,
    "queue.buffering.max.messages": 1_000_000,
}
"""Rows reach the broker within milliseconds, each once."""


class Injector:
    """Follows a rate profile from `start` to `stop`; row number n has the value `value(n)`.

    Without a `key`, rows go to the partitions in turn.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        rate: Rate,
        value: Callable[[int], bytes],
        *,
        partitions: Sequence[int] = (0,),
        key: Callable[[int], bytes] | None = None,
        limit: int | None = None,
    ) -> None:
        self.topic, self.rate, self.limit = topic, rate, limit
        self._value, self._key, self._partitions = value, key, tuple(partitions)
        self._producer = Producer({"bootstrap.servers": servers, **SETTINGS})
        self._times: list[float] = []
        self._counts: list[int] = []
        self._landed: list[float] = []
        self._failed: list[KafkaError] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._inject, name="springtide-injector", daemon=True)
        self.began_s = 0.0

    def __enter__(self) -> "Injector":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> "Injector":
        self._producer.list_topics(self.topic, timeout=FLUSH_S)
        self.began_s = time.time()
        self._note(self.began_s, 0)
        self._thread.start()
        return self

    def stop(self) -> int:
        """Send no more and wait until all is there; how many rows that were."""
        self._stopped.set()
        self._thread.join()
        left = self._producer.flush(FLUSH_S)
        if left or self._failed:
            raise RuntimeError(f"{left} rows were not written to {self.topic}, {len(self._failed)} failed")
        return self.sent

    @property
    def sent(self) -> int:
        """Rows sent so far."""
        return self._counts[-1] if self._counts else 0

    @property
    def finished(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and self.sent >= self.limit

    def sent_by(self, at_s: float) -> float:
        """Rows sent by a time, evenly between two moments that are known."""
        after = bisect_right(self._times, at_s)
        if after == 0:
            return 0.0
        if after == len(self._times):
            return float(self._counts[-1])
        before_s, until_s = self._times[after - 1], self._times[after]
        share = (at_s - before_s) / (until_s - before_s)
        return self._counts[after - 1] + share * (self._counts[after] - self._counts[after - 1])

    def landed(self) -> list[float]:
        """When each row got into the topic, in order: by the broker's clock if the topic has `LogAppendTime`.

        Complete once the injector has stopped.
        """
        return sorted(self._landed)

    def _inject(self) -> None:
        while not self._stopped.wait(TICK_S) and not self.finished:
            due = self.rate.due_rows(time.time() - self.began_s)
            if self.limit is not None:
                due = min(due, self.limit)
            for row in range(self.sent, due):
                self._send(row)
            self._producer.poll(0)
            self._note(time.time(), due)

    def _send(self, row: int) -> None:
        where = {"partition": self._partitions[row % len(self._partitions)]} if self._key is None else {}
        key = None if self._key is None else self._key(row)
        try:
            self._producer.produce(self.topic, self._value(row), key, on_delivery=self._delivered, **where)
        except BufferError:  # The broker is away or slow: rows that are due wait here, as they would elsewhere.
            self._producer.poll(TICK_S)
            self._send(row)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
            return
        kind, at_ms = message.timestamp()
        self._landed.append(at_ms / 1000 if kind == TIMESTAMP_LOG_APPEND_TIME else time.time())

    def _note(self, at_s: float, rows: int) -> None:
        self._counts.append(rows)
        self._times.append(at_s)
