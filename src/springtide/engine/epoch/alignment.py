"""Which sources are too far ahead of those that they meet, and so are not read for a while."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from springtide.blocks.manifest import OperatorState
from springtide.dataflow.graph import Graph, Keyed, Source
from springtide.engine.epoch.event_time import awake
from springtide.state.logic import BEGINNING_US


@dataclass(frozen=True)
class HeldBack:
    """A source that is not read until the others have come closer."""

    source: str
    because: str


def held_back(graph: Graph, states: Mapping[str, OperatorState], now_us: int) -> dict[str, HeldBack]:
    """By source: those whose newest event time is too far ahead of the slowest other input of a step that they feed.

    Inputs that are idle hold nobody back, nor do those that the source feeds, too: they come on only if it is read. A
    source that shares an input with others is taken to be as far as the input.
    """
    found: dict[str, HeldBack] = {}
    for step in graph.of(Keyed):
        if step.name in states and len(graph.inputs(step.name)) > 1:
            for held in _of_step(graph, step, states[step.name], now_us):
                found.setdefault(held.source, held)
    return found


def _of_step(graph: Graph, step: Keyed, state: OperatorState, now_us: int) -> Iterator[HeldBack]:
    inputs = graph.inputs(step.name)
    feeding = [graph.sources(name) for name in inputs]
    reached = awake(state, now_us, graph.idle_us(step.name))
    for sources, newest_us in zip(feeding, state.newest_us, strict=False):
        for source in sorted(sources):
            node = graph[source]
            assert isinstance(node, Source)
            others = [(other_us, number) for number, other_us in reached if source not in feeding[number]]
            if node.align_us is None or not others:
                continue
            slowest_us, slowest = min(others)
            if newest_us - slowest_us <= node.align_us:
                continue
            other = f"input {inputs[slowest]!r} of step {step.name!r}"
            if slowest_us == BEGINNING_US:
                yield HeldBack(source, f"{other} has had no row yet, and is not idle")
            else:
                yield HeldBack(source, f"it is {(newest_us - slowest_us) / 1e6:.1f} s ahead of {other}")
