"""Where rows come from: the sources by the names that people use."""

from typing import Any

from springtide.connectors.files.source import Files, files
from springtide.connectors.generator.source import Generator, generator
from springtide.connectors.kafka.source import Kafka, kafka
from springtide.connectors.streaming import Streaming, stream
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.source_spec import SourceSpec
from springtide.plugins import offered

__all__ = [
    "Files",
    "Generator",
    "Kafka",
    "SourceSpec",
    "Streaming",
    "as_source",
    "files",
    "generator",
    "kafka",
    "stream",
]


def as_source(name: str, source: Any) -> SourceSpec:
    """A source specification from whatever a person passed."""
    if isinstance(source, SourceSpec):
        return source.checked(name)
    if getattr(source, "isStreaming", None) is True:
        return Streaming(lambda _: source)
    if getattr(source, "isStreaming", None) is False:
        raise BadGraph(name, "a streaming DataFrame (spark.readStream...)", "a batch DataFrame")
    if callable(source):
        return Streaming(source)
    raise BadGraph(name, "a source of springtide.sources or a streaming DataFrame", repr(source))


def __getattr__(name: str) -> Any:
    """A source that another package offers."""
    return offered("springtide.sources", __name__, name)
