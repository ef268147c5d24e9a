"""Topics of a Kafka broker, for tests and experiments: made, widened, written to, and read as committed."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

TIMEOUT_S = 30.0
QUIET = {"log_level": 0}
"""A client that may find nobody there says so to its caller, not to the terminal."""


@dataclass(frozen=True)
class Record:
    """A record as a reader sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def answers(servers: str, within_s: float) -> bool:
    """Whether a broker is there."""
    try:
        AdminClient({"bootstrap.servers": servers, **QUIET}).list_topics(timeout=within_s)
    except KafkaException:
        return False
    return True


def create(servers: str, topic: str, partitions: int = 1, **config: str) -> str:
    """Make a topic; returns its name. Its settings have underscores for dots: `retention_ms="60000"`."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([_new(topic, partitions, config)])[topic].result(TIMEOUT_S)
    _await(lambda: len(partitions_of(servers, topic)) == partitions, f"topic {topic} with {partitions} partitions")
    return topic


def _new(topic: str, partitions: int, config: Mapping[str, str]) -> NewTopic:
    return NewTopic(topic, partitions, 1, config={name.replace("_", "."): value for name, value in config.items()})


def widen(servers: str, topic: str, partitions: int) -> None:
    """Give a topic more partitions, up to this number in all."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(TIMEOUT_S)
    _await(lambda: len(partitions_of(servers, topic)) == partitions, f"topic {topic} with {partitions} partitions")


def partitions_of(servers: str, topic: str) -> list[int]:
    """The partitions of a topic; none if it is not there."""
    found = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    return [] if found.error is not None else sorted(found.partitions)


def produce(
    servers: str,
    topic: str,
    values: Iterable[bytes | str | None],
    *,
    key: bytes | None = None,
    partition: int | None = None,
) -> None:
    """Write values to a topic, and wait until all are there."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    where = {} if partition is None else {"partition": partition}
    for value in values:
        producer.produce(topic, value=value, key=key, on_delivery=delivered, **where)
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if left or failed:
        raise TimeoutError(f"{left} records were not written to {topic}, {len(failed)} failed: {failed[:1]}")


def consume(servers: str, topic: str) -> list[Record]:
    """All that a `read_committed` reader sees of a topic now, from its beginning, by partition."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "springtide-reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    try:
        left = set(partitions_of(servers, topic))
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        found: list[Record] = []
        deadline = time.monotonic() + TIMEOUT_S
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: the end of partitions {sorted(left)} was not reached in {TIMEOUT_S} s")
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    found.append(Record(message.partition(), message.offset(), message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise KafkaException(error)
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {TIMEOUT_S} s for {what}")
        time.sleep(0.02)
