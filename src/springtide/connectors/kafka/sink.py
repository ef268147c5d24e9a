"""Kafka topics as a sink: each epoch exactly once for whoever reads what is committed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from springtide.blocks.errors import TakenOver
from springtide.confidential import Discreet, remember_settings
from springtide.connectors.kafka.broker import partitions, resolved
from springtide.connectors.kafka.delivery import RESULT, Address, Deliver
from springtide.connectors.parts import part_of
from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.errors import BadValue

PARTS = 2
"""Transactions of an epoch. A part must hold the same rows when an epoch is computed anew, so this is no option."""


@dataclass(frozen=True, repr=False)
class KafkaSink(Discreet, SinkSpec):
    """A topic. A row goes to a part by its key's hash, so that a part is the same however the epoch was computed."""

    servers: str | None
    topic: str
    key: str | None = None
    format: str = "json"
    client: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        remember_settings(self.client)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return () if self.key is None else (("key", self.key),)

    def check(self, lineage: str | None) -> None:
        """Raises an error, within seconds, if the broker is away or has no such topic; any lineage may write to it."""
        partitions(resolved(self.servers), self.topic, self.client)

    def publish(self, output: EpochOutput) -> None:
        rows = output.dataframe()
        value = "value" if self.format == "raw" else "to_json(struct(*), map('ignoreNullFields', 'false'))"
        key = "NULL" if self.key is None else f"CAST(`{self.key}` AS STRING)"
        parts = rows.selectExpr(
            f"{part_of(output.key, PARTS)} AS part",
            f"CAST({key} AS BINARY) AS key",
            f"CAST({value} AS BINARY) AS value",
        )
        name = f"springtide.{output.lineage}.{output.sink}"
        address = Address(resolved(self.servers), self.topic, name, dict(self.client))
        deliver = Deliver(address, output.epoch, output.generation)
        done = parts.repartitionById(PARTS, "part").mapInArrow(deliver, RESULT).collect()
        for row in done:
            if row.taken_over_by is not None:
                raise TakenOver(output.generation, row.taken_over_by)


def kafka(
    servers: str | None,
    topic: str,
    *,
    key: str | None = None,
    format: Literal["json", "raw"] = "json",
    client: Mapping[str, str] | None = None,
) -> KafkaSink:
    """A Kafka topic, which has to be there. With `servers` None, those of the environment variable `SPRINGTIDE_KAFKA`.

    Each row becomes one record: a JSON object of its columns, or with `format="raw"` its column `value`. `key`
    names the column that becomes the record's key. A reader with `isolation.level=read_committed` sees the rows of
    each epoch exactly once, whatever crashes. `client` has more settings for librdkafka.
    """
    if format not in ("json", "raw"):
        raise BadValue(f"format must be 'json' or 'raw', not {format!r}")
    return KafkaSink(servers, topic, key, format, client or {})
