"""The app as it is being written."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from springtide.connectors.sources import SourceSpec, as_source
from springtide.dataflow.duration import Duration, microseconds
from springtide.dataflow.errors import BadGraph
from springtide.dataflow.graph import Graph, Node, Sink, Source
from springtide.dataflow.restrictions import Restrictions
from springtide.dataflow.stream import Stream
from springtide.ids import valid_name
from springtide.state.position import DEFAULT_SLICES, slice_bits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Dataflow:
    """A dataflow: named steps from sources to sinks. `slices` cuts the key space of keyed steps."""

    def __init__(self, name: str, *, slices: int = DEFAULT_SLICES) -> None:
        self.name = valid_name("the app", name)
        slice_bits(slices)
        self.slices = slices
        self._nodes: dict[str, Node] = {}

    def source(
        self,
        name: str,
        source: "SourceSpec | DataFrame | Callable[[SparkSession], DataFrame] | Any",
        *,
        utility: str | None = None,
        idle: Duration | None = None,
        align: Duration | None = None,
    ) -> Stream:
        """Rows from a source of `springtide.sources`, a streaming DataFrame, or a function of the session.

        With `utility`, an SQL expression over its columns, rows that are worth little are shed first when queries of
        the app give way; without, rows are shed at random.

        With `idle`, such as `"30 seconds"`, steps that join it with other streams do not wait for it once it has been
        silent for that long by the wall clock: event time goes on without it. Without, they always wait.

        With `align`, such as `"1 minute"`, it is not read while its newest event time is further than that ahead of the
        slowest stream that it meets in a step with several inputs, as long as that one is not idle: else rows of a fast
        source pile up in the state. This is looked at after each epoch, so it goes with a limit of what an epoch takes,
        such as `maxOffsetsPerTrigger`. An app that runs until all that is available is done holds nothing back.
        """
        spec = as_source(name, source)
        if utility is not None and (not isinstance(utility, str) or not utility.strip()):
            raise BadGraph(name, "a utility that is an SQL expression, such as 'if(vip, 1, 0)'", repr(utility))
        if align is not None and not spec.holds:
            raise BadGraph(name, "align= for a source that can wait: files, kafka or generator", spec.kind)
        idle_us, align_us = (None if span is None else microseconds(span) for span in (idle, align))
        if idle_us == 0:
            raise BadGraph(name, "an idle= above zero, such as '30 seconds'", repr(idle))
        self.add(Source(name, spec, utility, idle_us, align_us))
        return spec.attach(Stream(self, name))

    def add(self, node: Node) -> None:
        valid_name("the step", node.name)
        if node.name in self._nodes:
            raise BadGraph(node.name, "a name of its own", "a name that another step has already")
        self._nodes[node.name] = node

    def restrict(self, sink: str, restrictions: Restrictions) -> None:
        """Say what holds for a query."""
        node = self._nodes[sink]
        assert isinstance(node, Sink)
        self._nodes[sink] = replace(node, restrictions=restrictions)

    def graph(self) -> Graph:
        """The dataflow as it stands, checked and frozen."""
        return Graph(tuple(self._nodes.values()))
