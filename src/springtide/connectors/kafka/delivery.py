"""One part of an epoch into a Kafka topic, exactly once for a reader of what is committed. Runs on a worker.

A part's rows are written in one transaction, together with a marker: the offset that a consumer group of the
part's own has committed is one more than the last epoch delivered. Both are there or neither is. Whoever
delivers a part first takes over its transactional id: a transaction that an earlier attempt has left open is
aborted by that, and an attempt that comes late is refused by the broker.

The marker also tells the generation of the driver, which a new driver raises before it delivers anything. So a late
attempt of a driver that was taken over may interrupt its successor, which then tries again, and never more than that.
"""

import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from springtide import faults
from springtide.blocks.errors import TakenOver
from springtide.confidential import Discreet
from springtide.connectors.kafka.broker import library, settings
from springtide.errors import SpringtideError

PATIENCE_S = 300.0
"""How long a broker may be away in the middle of a delivery."""
ANSWER_S = 30.0
PAUSE_S = 0.2
TRANSACTION_MS = "120000"
INTERRUPTIONS = 8
"""How often an attempt may be shut out by another one before it gives up."""
RESULT = "part INT, taken_over_by STRING"
"""The columns of what `Deliver` yields."""

_GENERATION = re.compile(r"generation=([0-9]+)")


class NotDelivered(SpringtideError, RuntimeError):
    """A part did not get into its topic."""

    def __init__(self, topic: str, part: int, epoch: int, reason: str) -> None:
        super().__init__(topic, part, epoch, reason)
        self.topic, self.part, self.epoch, self.reason = topic, part, epoch, reason

    def __str__(self) -> str:
        return f"part {self.part} of epoch {self.epoch} was not delivered to topic {self.topic!r}: {self.reason}"


@dataclass(frozen=True, repr=False)
class Address(Discreet):
    """Where a sink's parts go, and under which name."""

    servers: str
    topic: str
    name: str
    """Of this sink of this checkpoint, and of no other."""
    client: Mapping[str, str]


@dataclass(frozen=True)
class Deliver:
    """Delivers the rows of one task: columns `part`, `key` and `value`."""

    address: Address
    epoch: int
    generation: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            part, by = rows[0].column("part")[0].as_py(), None
            try:
                deliver(self.address, self.epoch, self.generation, part, rows)
            except TakenOver as error:
                by = error.by  # Not to be tried again, and the driver wants to know what it was.
            faults.fire("publish.part", self.epoch)
            told = {"part": pa.array([part], pa.int32()), "taken_over_by": pa.array([by], pa.string())}
            yield pa.RecordBatch.from_pydict(told)


def deliver(address: Address, epoch: int, generation: int, part: int, rows: list[pa.RecordBatch]) -> None:
    """Write a part unless it is there; a broker that goes away meanwhile is waited for.

    TakenOver if a driver of a higher generation has delivered something, or has been about to.
    """
    kafka = library()
    deadline, interruptions = time.monotonic() + PATIENCE_S, 0
    while True:
        try:
            return _once(kafka, address, epoch, generation, part, rows)
        except kafka.KafkaException as error:
            reason = error.args[0]
            interruptions += _interrupted(kafka, reason)
            given_up = interruptions > INTERRUPTIONS or time.monotonic() > deadline
            if given_up or _hopeless(kafka, reason):
                raise NotDelivered(address.topic, part, epoch, reason.str()) from error
        # At random: two that shut one another out are not to go on with that.
        time.sleep(PAUSE_S + random.uniform(0.0, PAUSE_S * (2**interruptions - 1)))


def _once(kafka: Any, address: Address, epoch: int, generation: int, part: int, rows: list[pa.RecordBatch]) -> None:
    name = f"{address.name}.{part}"
    own = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_MS, "linger.ms": "5"}
    # The partitioner of Java's clients: equal keys go to one partition, whoever writes them.
    producer = kafka.Producer(settings(address.servers, address.client, partitioner="murmur2_random", **own))
    # A connection that is up already saves half a second of waiting for the coordinator.
    producer.list_topics(address.topic, timeout=ANSWER_S)
    producer.init_transactions(ANSWER_S)
    group = kafka.Consumer(settings(address.servers, address.client, **{"group.id": name}))
    try:
        # Only now: what an earlier attempt left open is decided, and nobody else can commit any more.
        found = group.committed([kafka.TopicPartition(address.topic, 0)], timeout=ANSWER_S)[0]
        known = _generation(found.metadata)
        if known > generation:
            raise TakenOver(generation, f"the driver of generation {known}")

        def mark(offset: int) -> None:
            marker = kafka.TopicPartition(address.topic, 0, offset, f"generation={generation}")
            producer.send_offsets_to_transaction([marker], group.consumer_group_metadata(), ANSWER_S)

        if known < generation:
            # Earlier drivers are shut out before rows are sent, which may take long.
            producer.begin_transaction()
            mark(max(found.offset, 0))
            producer.commit_transaction(ANSWER_S)
        if found.offset > epoch:
            return
        producer.begin_transaction()
        _send(producer, address, epoch, part, rows)
        mark(epoch + 1)
        faults.fire("publish.sent", epoch)
        producer.commit_transaction(ANSWER_S)
    finally:
        group.close()
        # Rows of a transaction that failed are not to hold up whoever tries next.
        producer.purge()


def _send(producer: Any, address: Address, epoch: int, part: int, rows: list[pa.RecordBatch]) -> None:
    for batch in rows:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    producer.produce(address.topic, value, key)
                    break
                except BufferError:
                    if time.monotonic() > deadline:
                        reason = f"the client's queue was full for {PATIENCE_S:.0f} s: see whether the broker answers"
                        raise NotDelivered(address.topic, part, epoch, reason) from None
                    producer.poll(PAUSE_S)
        producer.poll(0)


def _generation(metadata: str | None) -> int:
    """The generation that a marker tells; 0 if an earlier release has left it."""
    found = _GENERATION.fullmatch(metadata or "")
    return int(found[1]) if found else 0


def _interrupted(kafka: Any, error: Any) -> bool:
    """Whether another attempt has taken the transactional id."""
    codes = kafka.KafkaError
    return error.code() in {codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH}


def _hopeless(kafka: Any, error: Any) -> bool:
    """Whether trying again can't help: there is nothing to write to."""
    codes = kafka.KafkaError
    return error.code() in {
        codes._UNKNOWN_TOPIC,
        codes.UNKNOWN_TOPIC_OR_PART,
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.CLUSTER_AUTHORIZATION_FAILED,
    }
