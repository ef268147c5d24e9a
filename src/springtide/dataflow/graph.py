"""The frozen graph of an app: named steps and what flows between them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from springtide.dataflow.errors import BadGraph
from springtide.dataflow.operations import Operation
from springtide.dataflow.restrictions import NONE, Restrictions
from springtide.dataflow.sink_spec import SinkSpec
from springtide.dataflow.source_spec import SourceSpec
from springtide.state.lateness import Lateness

UPDATES = "updates"
FINAL_ONLY = "final"


@dataclass(frozen=True)
class Source:
    name: str
    spec: SourceSpec
    utility: str | None = None
    """What a row is worth, in SQL over its columns: under overload, rows that are worth little are shed first."""
    idle_us: int | None = None
    """How long it may be silent, by the wall clock, before other sources do not wait for it; None if they always do."""
    align_us: int | None = None
    """How far it may be ahead, by event time, of the slowest stream that it meets; None if that does not matter."""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transform:
    """Any stateless function from DataFrame to DataFrame."""

    name: str
    parents: tuple[str, ...]
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class MapBatches:
    """A function from Arrow table to Arrow table, run on workers."""

    name: str
    parents: tuple[str, ...]
    function: Callable[[pa.Table], pa.Table]
    output: pa.Schema


@dataclass(frozen=True)
class Union:
    name: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """The rows of several keyed streams on their way to one step; each says which side it is of."""

    name: str
    parents: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    """By side: its key. Columns of one place have one type."""
    step: str
    """The keyed step that they go to."""


@dataclass(frozen=True)
class Keyed:
    """A step with state."""

    name: str
    parents: tuple[str, ...]
    key: tuple[str, ...]
    operation: Operation


@dataclass(frozen=True)
class Late:
    """The rows of one of a keyed step's inputs that come too late for it."""

    name: str
    parents: tuple[str, ...]
    """The input."""
    step: str
    lateness: Lateness


@dataclass(frozen=True)
class Sink:
    name: str
    parents: tuple[str, ...]
    spec: SinkSpec
    mode: str = UPDATES
    restrictions: Restrictions = NONE
    """Of the query whose rows it takes."""


Node = Source | Transform | MapBatches | Union | Sides | Keyed | Late | Sink


@dataclass(frozen=True)
class Graph:
    """Steps in topological order; each has a name of its own."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.of(Source):
            raise BadGraph("app", "at least one source", "none; add one with app.source(name, ...)")
        if not self.of(Sink):
            raise BadGraph("app", "at least one sink", "none; add one with stream.sink(name, ...)")
        for node in self.nodes:
            if not isinstance(node, Sink) and not self.consumers[node.name]:
                raise BadGraph(node.name, "a step or sink that uses it", "none: its rows would be thrown away")

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def consumers(self) -> dict[str, tuple[str, ...]]:
        """By step: the steps that read it."""
        found: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.parents:
                found[parent].append(node.name)
        return {name: tuple(names) for name, names in found.items()}

    def of(self, *kinds: type) -> tuple[Any, ...]:
        """The steps of some kinds."""
        return tuple(node for node in self.nodes if isinstance(node, kinds))

    def queries(self, name: str) -> tuple[Sink, ...]:
        """The sinks that a step's rows reach, in whatever form."""
        node = self[name]
        if isinstance(node, Sink):
            return (node,)
        found = {sink.name: sink for consumer in self.consumers[name] for sink in self.queries(consumer)}
        return tuple(found.values())

    def restrictions(self, name: str) -> Restrictions:
        """What holds for a step: the highest priority and the highest minimum accuracy of its queries."""
        of = [sink.restrictions for sink in self.queries(name)]
        return Restrictions(max(r.priority for r in of), max(r.minimum_accuracy for r in of))

    @cached_property
    def may_shed(self) -> bool:
        """Whether some query can do with fewer rows."""
        return any(sink.restrictions.may_shed for sink in self.of(Sink))

    @cached_property
    def captured(self) -> tuple[str, ...]:
        """The steps whose rows a sink takes without a keyed step between it and a source, or rows that are late."""
        return tuple(dict.fromkeys(s.parents[0] for s in self.of(Sink) if self.reads_sources(s.name)))

    def merged(self, name: str) -> tuple[str, ...]:
        """The keyed steps whose rows a step hands on as they are; none if it changes some, or has some of a source."""
        node = self[name]
        if isinstance(node, Keyed):
            return (name,)
        of = [self.merged(parent) for parent in node.parents] if isinstance(node, Union) else []
        return tuple(step for steps in of for step in steps) if all(of) else ()

    def producers(self, name: str) -> frozenset[str]:
        """The sources and keyed steps whose rows a step hands on, changed by stateless steps alone."""
        node = self[name]
        if isinstance(node, Source | Keyed):
            return frozenset([name])
        return frozenset[str]().union(*(self.producers(parent) for parent in node.parents))

    @cached_property
    def feeders(self) -> dict[str, frozenset[str]]:
        """By keyed or captured step: the sources and keyed steps that its rows come from."""
        keyed = {node.name: self.producers(node.parents[0]) for node in self.of(Keyed)}
        return keyed | {step: self.producers(step) for step in self.captured}

    def inputs(self, step: str) -> tuple[str, ...]:
        """The steps whose rows a keyed step gets, one for each of its inputs."""
        (parent,) = self[step].parents
        return self[parent].parents if isinstance(self[parent], Sides) else (parent,)

    def sources(self, name: str) -> frozenset[str]:
        """The sources that a step's rows come from, however far above."""
        node = self[name]
        if isinstance(node, Source):
            return frozenset([name])
        return frozenset[str]().union(*(self.sources(parent) for parent in node.parents))

    def idle_us(self, step: str, paused_us: Mapping[str, int] | None = None) -> tuple[int | None, ...]:
        """By input of a keyed step: how long it may be silent before the others do not wait for it.

        `paused_us` tells by source how long nobody has looked for its rows: that is no silence.
        """
        return tuple(self._idle_us(name, paused_us or {}) for name in self.inputs(step))

    def _idle_us(self, name: str, paused_us: Mapping[str, int]) -> int | None:
        sources = self.sources(name)
        limits = [self._by_name[source].idle_us for source in sources]  # type: ignore[union-attr]
        pause_us = max(paused_us.get(source, 0) for source in sources)
        return None if None in limits else max(limit for limit in limits if limit is not None) + pause_us

    def nearest_keyed(self, name: str) -> frozenset[str]:
        """The keyed steps whose output reaches a step without another one between."""
        found: set[str] = set()
        for parent in self[name].parents:
            if isinstance(self[parent], Keyed):
                found.add(parent)
            else:
                found |= self.nearest_keyed(parent)
        return frozenset(found)

    def reads_sources(self, name: str) -> bool:
        """Whether a path without a keyed step leads to a step from a source, or from rows that are late."""
        parents = [self[parent] for parent in self[name].parents]
        return any(
            isinstance(p, Source | Late) or (not isinstance(p, Keyed) and self.reads_sources(p.name)) for p in parents
        )

    def levels(self) -> tuple[tuple[Keyed, ...], ...]:
        """Keyed steps by depth: those of one level do not depend on each other."""
        depth: dict[str, int] = {}
        for node in self.of(Keyed):
            depth[node.name] = 1 + max((depth[k] for k in self.nearest_keyed(node.name)), default=-1)
        count = max(depth.values(), default=-1) + 1
        return tuple(tuple(k for k in self.of(Keyed) if depth[k.name] == level) for level in range(count))
