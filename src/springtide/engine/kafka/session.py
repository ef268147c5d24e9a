"""Sessions that can read Kafka: those that we make get the connector's jars, on the driver and on executors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Source
from springtide.dataflow.sources import Kafka
from springtide.engine.kafka.jars import JarsMissing, connector_settings
from springtide.engine.session import SessionConfig


def for_all(graphs: Sequence[Graph], settings: Mapping[str, str]) -> dict[str, str]:
    """Spark settings for a session that several apps share."""
    config = SessionConfig(settings=settings)
    for graph in graphs:
        config = equipped(config, graph)
    return dict(config.settings)


def equipped(config: SessionConfig, graph: Graph) -> SessionConfig:
    """The same, with the connector on the class path if the app has a Kafka source."""
    readers = [source for source in graph.of(Source) if isinstance(source.spec, Kafka)]
    if not readers:
        return config
    try:
        more = connector_settings(config.settings)
    except JarsMissing as error:
        raise StepFailed(readers[0].name, "opening its source", str(error)) from error
    return replace(config, settings={**config.settings, **more})
