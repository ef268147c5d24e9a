"""Kafka topics as a source: what to read, checked; it is opened with Spark's connector."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from springtide.confidential import HIDDEN, Discreet, is_secret, remember_settings
from springtide.connectors.kafka.dead_letters import ORIGIN_KEY, detoured
from springtide.connectors.kafka.sink import KafkaSink
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.source_spec import SourceSpec
from springtide.dataflow.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from springtide.connectors.kafka.gauge import KafkaGauge
    from springtide.connectors.open_source import OpenSource

Format = Literal["json", "raw"]
Starting = Literal["earliest", "latest"]
POSITION = ("_topic", "_partition", "_offset", "_timestamp", "_key")
"""The columns beside those of the schema, if asked for."""
TO_TOPIC = "topic:"
_OPTIONS = {
    name.lower(): name
    for name in (
        "failOnDataLoss",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "includeHeaders",
        "kafkaConsumer.pollTimeoutMs",
        "maxOffsetsPerTrigger",
        "maxRecordsPerPartition",
        "maxTriggerDelay",
        "minOffsetsPerTrigger",
        "minPartitions",
        "startingOffsetsByTimestampStrategy",
        "startingTimestamp",
    )
}
"""Options of Spark's connector that go with `subscribe`; beside them, any `kafka.…` for its clients."""
_OURS = {"kafka.bootstrap.servers": "servers", "subscribe": "topic", "startingoffsets": "starting"}


@dataclass(frozen=True, repr=False)
class Kafka(Discreet, SourceSpec):
    """A topic, read from its beginning or its end on; partitions that it gets later are read, too."""

    servers: str | None
    topic: str
    schema: str | None = None
    format: str = "json"
    starting: str = "earliest"
    malformed: str = "count"
    position: bool = False
    client: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False
    kind: str = "kafka"

    def __post_init__(self) -> None:
        remember_settings(self.client)
        remember_settings(self.options)

    @property
    def admits(self) -> bool:
        """Whether the rows that it gives in an epoch can be limited while it runs: not if the user has a limit."""
        return "maxoffsetspertrigger" not in {name.lower() for name in self.options}

    @property
    def holds(self) -> bool:
        return True

    @property
    def dead_letter_topic(self) -> str | None:
        """Where malformed records go, if anywhere."""
        return self.malformed.removeprefix(TO_TOPIC) if self.malformed.startswith(TO_TOPIC) else None

    def checked(self, step: str) -> "Kafka":
        """Itself; BadGraph, which names the step, if it can't be read as written."""
        if not self.topic or "," in self.topic:
            raise BadGraph(step, "the name of one topic", repr(self.topic))
        if self.format not in ("json", "raw"):
            raise BadGraph(step, "format='json' or 'raw'", repr(self.format))
        if self.format == "json" and self.schema is None:
            raise BadGraph(step, "a schema for JSON, for example schema='user STRING, n INT', or format='raw'", "none")
        if self.format == "raw" and (self.schema is not None or self.malformed != "count"):
            raise BadGraph(step, "neither schema= nor malformed= with format='raw', which parses nothing", "one")
        if self.format == "raw" and self.lenient:
            raise BadGraph(step, "no lenient= with format='raw', which parses nothing", "lenient=True")
        if self.starting not in ("earliest", "latest"):
            raise BadGraph(step, "starting='earliest' or 'latest'", repr(self.starting))
        if self.malformed not in ("count", "fail") and not self.dead_letter_topic:
            raise BadGraph(step, "malformed='count', 'fail' or 'topic:NAME'", repr(self.malformed))
        if self.dead_letter_topic == self.topic:
            raise BadGraph(step, "another topic for malformed records than the one they come from", repr(self.topic))
        for name, value in self.options.items():
            _check_option(step, name, value)
        return self

    def attach(self, stream: Stream) -> Stream:
        if self.dead_letter_topic is None:
            return stream
        return detoured(stream, KafkaSink(self.servers, self.dead_letter_topic, ORIGIN_KEY, "raw", self.client))

    def session_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        from springtide.connectors.kafka.jars import connector_settings

        return connector_settings(settings)

    def open(self, spark: "SparkSession", step: str, *, placed: bool) -> "OpenSource":
        from springtide.connectors.kafka.reader import open_topic

        return open_topic(spark, step, self, placed=placed)

    def gauge(self, step: str, initial_offset: Callable[[], str | None]) -> "KafkaGauge":
        from springtide.connectors.kafka.gauge import KafkaGauge

        return KafkaGauge(step, self, initial_offset)


def _check_option(step: str, name: str, value: object) -> None:
    if ours := _OURS.get(name.lower()):
        raise BadGraph(step, f"{ours}= instead of Spark's own option", f"{name}={value!r}")
    if not isinstance(value, str):
        raise BadGraph(step, f"option {name} as a string", HIDDEN if is_secret(name) else repr(value))
    if name.startswith("kafka.") or name.lower() in _OPTIONS:
        return
    raise BadGraph(step, f"an option of Spark's Kafka source ({', '.join(_OPTIONS.values())}, kafka.…)", repr(name))


def kafka(
    servers: str | None,
    topic: str,
    *,
    schema: str | None = None,
    format: Format = "json",
    starting: Starting = "earliest",
    malformed: str = "count",
    position: bool = False,
    client: Mapping[str, str] | None = None,
    lenient: bool = False,
    **options: str,
) -> Kafka:
    """A Kafka topic. With `servers` None, those of the environment variable `SPRINGTIDE_KAFKA`.

    JSON needs a `schema` ("user STRING, at TIMESTAMP"). Records that do not fit it are counted as dead letters,
    stop the app with `malformed="fail"`, or go to a topic with `malformed="topic:NAME"`. With `position`, rows have
    the columns `_topic`, `_partition`, `_offset`, `_timestamp` and `_key`, too. `format="raw"` gives `key`,
    `value`, `topic`, `partition`, `offset` and `timestamp` as they are.

    A record of JSON is one object in UTF-8 and nothing else. With `lenient=True`, text after the object is passed over,
    and single quotes and invalid UTF-8 are taken.

    A new app starts at the `starting` end of the topic. Other options go to Spark, for example
    `maxOffsetsPerTrigger="10000"` or `**{"kafka.security.protocol": "SSL"}`; `client` has the settings of the same
    kind for librdkafka, with which the driver asks how far the topic is.
    """
    return Kafka(servers, topic, schema, format, starting, malformed, position, client or {}, options, lenient)
