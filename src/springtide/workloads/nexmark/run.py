"""A query as an app."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from springtide.app import App
from springtide.connectors import sinks
from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs
from springtide.workloads.nexmark.queries.catalogue import Query


def build(query: Query, directory: str | Path, sink: sinks.SinkSpec, *, files_an_epoch: int = 1) -> App:
    """The app of a query over the files in a directory; an epoch takes some files of each table."""
    app = App(query.name)
    stream_of(query)(Inputs(app, directory, files_an_epoch)).sink("result", sink)
    return app


def stream_of(query: Query) -> Callable[[Inputs], Stream]:
    """The function that writes the query down."""
    function: Callable[[Inputs], Stream] = import_module(f"{__package__}.queries.{query.name}").query
    return function
