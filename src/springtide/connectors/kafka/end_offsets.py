"""How far a topic is: its end offsets, asked for beside the epochs, with the time at which they were so."""

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.connectors.kafka.broker import library, settings
from springtide.logs import room_logger
from springtide.waits import let_go

log = room_logger(__name__)
EVERY_S = 0.5
ASK_S = 2.0
"""How long one question may take; a broker that is away costs no epoch anything."""
END_S = 4 * ASK_S
"""A thread that asks ends with its question, of which there may be a few in a row."""
SHARP_S = 0.02
AGAIN = 2
"""How often a question that took longer than that is asked again; the quickest answer counts."""
KEPT = 2400
"""Answers that are remembered: twenty minutes, for rows that wait long."""
DISCOVER = 4
"""One question in this many asks for new partitions of the topic, too."""


@dataclass(frozen=True)
class Ends:
    """By partition: the offset that the next row will have."""

    at_s: float
    offsets: Mapping[int, int]


class EndsSeen:
    """What a broker has answered so far, the oldest forgotten."""

    def __init__(self) -> None:
        self._answers: deque[Ends] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, ends: Ends) -> None:
        """Remember an answer."""
        with self._lock:
            self._answers.append(ends)

    def latest(self, not_before_s: float) -> Ends | None:
        """The last answer, if it is no older than that."""
        with self._lock:
            last = self._answers[-1] if self._answers else None
        return last if last is not None and last.at_s >= not_before_s else None

    def arrived_s(self, partition: int, offset: int) -> float | None:
        """When the row of an offset came in, between the last answer without it and the first with it.

        A row that came after the last answer counts as come with it. None for one that was there before the first.
        """
        with self._lock:
            answers = list(self._answers)
        ends = [answer.offsets.get(partition, 0) for answer in answers]
        after = bisect_left(ends, offset + 1)
        if not answers or after == 0:
            return None
        before_s, had = answers[after - 1].at_s, ends[after - 1]
        if after == len(answers):
            return before_s
        share = (offset + 1 - had) / (ends[after] - had)
        return before_s + share * (answers[after].at_s - before_s)


class EndOffsets:
    """Asks a broker in a thread of its own. Nothing here raises or waits for the broker."""

    def __init__(
        self,
        servers: str,
        topic: str,
        client: Mapping[str, str],
        on_answer: Callable[[Ends], None],
        every_s: float = EVERY_S,
    ) -> None:
        self._servers, self._topic, self._client = servers, topic, client
        self._on_answer, self._every_s = on_answer, every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"springtide-ends-{topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()
        let_go(self._thread, END_S)

    def _watch(self) -> None:
        kafka = library()
        admin = kafka.admin.AdminClient(settings(self._servers, self._client))
        partitions: list[int] = []
        asked = 0
        while not self._stopped.is_set():
            try:
                if asked % DISCOVER == 0 or not partitions:
                    partitions = _partitions(admin, self._topic)
                asked += 1
                self._on_answer(_ask(kafka, admin, self._topic, partitions))
            except Exception as error:
                # A broker that is away, restarts or has lost the topic: no answer is the answer.
                log.debug("topic %s: no answer how far it is: %s", self._topic, error)
                partitions = []
            self._stopped.wait(self._every_s)


def _partitions(admin: Any, topic: str) -> list[int]:
    return sorted(admin.list_topics(topic, timeout=ASK_S).topics[topic].partitions)


def _ask(kafka: Any, admin: Any, topic: str, partitions: list[int]) -> Ends:
    """The end offsets of all partitions. A question that took long is asked again: its answer has no sharp time."""
    best = _answer(kafka, admin, topic, partitions)
    for _ in range(AGAIN):
        if best[0] <= SHARP_S:
            break
        best = min(best, _answer(kafka, admin, topic, partitions), key=lambda answer: answer[0])
    return best[1]


def _answer(kafka: Any, admin: Any, topic: str, partitions: list[int]) -> tuple[float, Ends]:
    """How long one question took, and its answer, as of the middle of that time."""
    latest = kafka.admin.OffsetSpec.latest()
    wanted = {kafka.TopicPartition(topic, partition): latest for partition in partitions}
    asked_s = time.time()
    futures = admin.list_offsets(wanted, isolation_level=kafka.IsolationLevel.READ_COMMITTED, request_timeout=ASK_S)
    offsets = {where.partition: future.result(ASK_S).offset for where, future in futures.items()}
    answered_s = time.time()
    return answered_s - asked_s, Ends((asked_s + answered_s) / 2, offsets)
