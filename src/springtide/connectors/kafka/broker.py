"""What both ends ask a Kafka broker, with answers that come soon or not at all."""

import os
from collections.abc import Mapping
from typing import Any

from springtide.errors import BadValue, SpringtideError

SERVERS = "SPRINGTIDE_KAFKA"
"""The environment variable with the servers of sources and sinks that name none."""
ASK_S = 5.0
"""How long a broker may take to answer at the start."""
QUIET = {"log_level": "0"}
"""Clients tell their callers, not the terminal."""


class NoClient(SpringtideError, RuntimeError):
    """The Python client for Kafka is not installed."""

    def __str__(self) -> str:
        return "expected the package confluent-kafka, which is not installed: run `pip install 'springtide[kafka]'`"


class NoServers(BadValue):
    """Nobody said where Kafka is."""

    def __str__(self) -> str:
        return (
            f"expected servers='host:port' or the environment variable {SERVERS}, got neither; "
            "`springtide run … --kafka` starts a broker and sets it"
        )


class BrokerAway(SpringtideError, ConnectionError):
    """No broker answered."""

    def __init__(self, servers: str, reason: str) -> None:
        super().__init__(servers, reason)
        self.servers, self.reason = servers, reason

    def __str__(self) -> str:
        return f"expected a Kafka broker at {self.servers}, got no answer within {ASK_S:g} s ({self.reason})"


class TopicMissing(SpringtideError, LookupError):
    """A broker that has no such topic."""

    def __init__(self, servers: str, topic: str, known: tuple[str, ...]) -> None:
        super().__init__(servers, topic, known)
        self.servers, self.topic, self.known = servers, topic, known

    def __str__(self) -> str:
        others = ", ".join(self.known[:8]) or "none"
        return f"expected topic {self.topic!r} at {self.servers}, which is not there; create it first. Topics: {others}"


def resolved(servers: str | None) -> str:
    """The servers that were named, or those of the environment."""
    found = servers or os.environ.get(SERVERS)
    if not found:
        raise NoServers
    return found


def library() -> Any:
    """The client library, which is optional."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise NoClient from error
    return confluent_kafka


def settings(servers: str, client: Mapping[str, str], **more: str) -> dict[str, str]:
    """The settings of a client."""
    return {"bootstrap.servers": servers, **QUIET, **more, **client}


def partitions(servers: str, topic: str, client: Mapping[str, str], within_s: float = ASK_S) -> tuple[int, ...]:
    """The partitions of a topic; BrokerAway or TopicMissing if there are none."""
    kafka = library()
    admin = kafka.admin.AdminClient(settings(servers, client))
    try:
        topics = admin.list_topics(timeout=within_s).topics
    except kafka.KafkaException as error:
        raise BrokerAway(servers, error.args[0].str()) from error
    if topic not in topics or topics[topic].error is not None:
        raise TopicMissing(servers, topic, tuple(sorted(name for name in topics if not name.startswith("__"))))
    return tuple(sorted(topics[topic].partitions))
