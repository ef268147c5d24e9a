"""One part of an epoch into a Kafka topic, exactly once for a reader of what is committed. Runs on a worker.

A part's rows are written in one transaction, together with a marker: the offset that a consumer group of the
part's own has committed is one more than the last epoch delivered. Both are there or neither is. Whoever
delivers a part first takes over its transactional id: a transaction that an earlier attempt has left open is
aborted by that, and an attempt that comes late is refused by the broker.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from springtide import faults
from springtide.confidential import Discreet
from springtide.dataflow.broker import library, settings
from springtide.errors import SpringtideError

PATIENCE_S = 300.0
"""How long a broker may be away in the middle of a delivery."""
ANSWER_S = 30.0
PAUSE_S = 0.2
TRANSACTION_MS = "120000"


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

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            part = rows[0].column("part")[0].as_py()
            deliver(self.address, self.epoch, part, rows)
            faults.fire("publish.part", self.epoch)
            yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32())})


def deliver(address: Address, epoch: int, part: int, rows: list[pa.RecordBatch]) -> None:
    """Write a part unless it is there; a broker that goes away meanwhile is waited for."""
    kafka = library()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _once(kafka, address, epoch, part, rows)
        except kafka.KafkaException as error:
            reason = error.args[0]
            if _hopeless(kafka, reason) or time.monotonic() > deadline:
                raise NotDelivered(address.topic, part, epoch, reason.str()) from error
        time.sleep(PAUSE_S)


def _once(kafka: Any, address: Address, epoch: int, part: int, rows: list[pa.RecordBatch]) -> None:
    name = f"{address.name}.{part}"
    own = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_MS, "linger.ms": "5"}
    # The partitioner of Java's clients: equal keys go to one partition, whoever writes them.
    producer = kafka.Producer(settings(address.servers, address.client, partitioner="murmur2_random", **own))
    # A connection that is up already saves half a second of waiting for the coordinator.
    producer.list_topics(address.topic, timeout=ANSWER_S)
    producer.init_transactions(ANSWER_S)
    group = kafka.Consumer(settings(address.servers, address.client, **{"group.id": name}))
    try:
        marker = kafka.TopicPartition(address.topic, 0)
        # Only now: what an earlier attempt left open is decided, and nobody else can commit any more.
        if group.committed([marker], timeout=ANSWER_S)[0].offset > epoch:
            return
        producer.begin_transaction()
        _send(producer, address, epoch, part, rows)
        marker.offset = epoch + 1
        producer.send_offsets_to_transaction([marker], group.consumer_group_metadata(), ANSWER_S)
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


def _hopeless(kafka: Any, error: Any) -> bool:
    """Whether trying again can't help: somebody newer has taken over, or there is nothing to write to."""
    codes = kafka.KafkaError
    return error.code() in {
        codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH, codes._UNKNOWN_TOPIC,
        codes.UNKNOWN_TOPIC_OR_PART, codes.TOPIC_AUTHORIZATION_FAILED, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        codes.GROUP_AUTHORIZATION_FAILED, codes.CLUSTER_AUTHORIZATION_FAILED,
    }  # fmt: skip
