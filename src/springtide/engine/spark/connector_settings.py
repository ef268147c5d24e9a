"""Spark settings that the sources of an app take, such as a connector's jars on the class path."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Source
from springtide.engine.spark.session import SessionConfig
from springtide.errors import SpringtideError


def for_all(graphs: Sequence[Graph], settings: Mapping[str, str]) -> dict[str, str]:
    """Spark settings for a session that several apps share."""
    config = SessionConfig(settings=settings)
    for graph in graphs:
        config = equipped(config, graph)
    return dict(config.settings)


def equipped(config: SessionConfig, graph: Graph) -> SessionConfig:
    """The same, with what each source of the app takes; StepFailed names the source that lacks something."""
    for source in graph.of(Source):
        try:
            more = source.spec.session_settings(config.settings)
        except SpringtideError as error:
            raise StepFailed(source.name, "opening its source", str(error)) from error
        config = replace(config, settings={**config.settings, **more})
    return config
