"""Sinks that can tell before the first epoch that they would fail."""

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Sink


def check_sinks(graph: Graph) -> None:
    """Ask every sink that can be asked; an error names the step."""
    for sink in graph.of(Sink):
        check = getattr(sink.spec, "check", None)
        if check is None:
            continue
        try:
            check()
        except Exception as error:
            raise StepFailed(sink.name, "opening its sink", str(error)) from error
