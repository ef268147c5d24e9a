"""Sinks are asked before the first epoch whether they would fail."""

from springtide.blocks.store import Store
from springtide.dataflow.errors import BadGraph, StepFailed
from springtide.dataflow.graph import Graph, Sink
from springtide.engine.durability.spark_log import lineage


def check_sinks(graph: Graph, checkpoint: Store) -> None:
    """Ask every sink; an error names the step."""
    try:
        known = lineage(checkpoint)
    except FileNotFoundError:
        known = None  # Spark makes it up when the first query starts.
    places: dict[str, str] = {}
    for sink in graph.of(Sink):
        try:
            place = sink.spec.place
            sink.spec.check(known)
        except Exception as error:
            raise StepFailed(sink.name, "opening its sink", str(error)) from error
        if place is None:
            continue
        if place in places:
            raise BadGraph(sink.name, "a path of its own", f"{place!r}, where {places[place]!r} writes")
        places[place] = sink.name
