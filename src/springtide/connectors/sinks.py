"""Where rows go: the sinks by the names that people use."""

from typing import Any

from springtide.connectors.console import Console, console
from springtide.connectors.foreach_epoch import ForeachEpoch, foreach_epoch
from springtide.connectors.kafka.sink import KafkaSink, kafka
from springtide.connectors.memory import Memory, memory
from springtide.connectors.noop import Noop, noop
from springtide.connectors.parquet import Parquet, parquet
from springtide.connectors.postgres import Postgres, postgres
from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.plugins import offered

__all__ = [
    "Console",
    "EpochOutput",
    "ForeachEpoch",
    "KafkaSink",
    "Memory",
    "Noop",
    "Parquet",
    "Postgres",
    "SinkSpec",
    "console",
    "foreach_epoch",
    "kafka",
    "memory",
    "noop",
    "parquet",
    "postgres",
]


def __getattr__(name: str) -> Any:
    """A sink that another package offers."""
    return offered("springtide.sinks", __name__, name)
