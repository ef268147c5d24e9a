"""The snapshot: all that a policy may know, measured over one window of time. Immutable."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from springtide.errors import BadValue
from springtide.ids import SliceId, WorkerId

STEADY = 0.15
"""A rate that changes by less than this share is steady."""


class BadSnapshot(BadValue):
    """A metric is missing or no number: nothing can be decided from it."""

    def __init__(self, metric: str, of: str, found: object) -> None:
        super().__init__(metric, of, found)
        self.metric, self.of, self.found = metric, of, found

    def __str__(self) -> str:
        return f"{self.metric} of {self.of}: expected a number that is not negative, got {self.found!r}"


@dataclass(frozen=True)
class Instance:
    """One instance of one operator, over the window."""

    operator: str
    number: int
    worker: WorkerId
    useful_s: float
    """Time spent on rows: deserialising, processing, serialising; waiting is not in it."""
    records_in: float
    """Rows processed."""
    records_out: float
    """Rows pushed to the next operators."""
    queue_rows: float = 0.0
    """Rows that are due and wait for it."""
    cpu_s: float = 0.0
    state_bytes: int = 0

    @property
    def sound(self) -> bool:
        """Whether all is well with its figures, told quickly: there may be tens of thousands of instances."""
        most = math.inf
        try:
            return (
                0 <= self.useful_s < most
                and 0 <= self.records_in < most
                and 0 <= self.records_out < most
                and 0 <= self.queue_rows < most
                and 0 <= self.cpu_s < most
            )
        except TypeError:
            return False

    @property
    def true_rate(self) -> float:
        """Rows a second it would process if it never waited; 0 if it had none."""
        return self.records_in / self.useful_s if self.useful_s > 0 else 0.0

    @property
    def true_output_rate(self) -> float:
        """Rows a second it would push if it never waited; 0 if it had none."""
        return self.records_out / self.useful_s if self.useful_s > 0 else 0.0


@dataclass(frozen=True)
class Edge:
    """Rows go from a source or an operator to an operator."""

    upstream: str
    downstream: str
    ratio: float = 1.0
    """Rows that arrive for each one that was pushed: stateless steps in between may drop or add some."""


@dataclass(frozen=True)
class Source:
    """A source, over the window."""

    name: str
    rate: float
    """Rows that fell due, a second, in the last third of the window."""
    lag_rows: float = 0.0
    """Rows that are due and not taken yet, at the end of the window."""
    lag_s: float = 0.0
    """How long the newest published rows had been due."""
    rate_before: float | None = None
    """The rate in the third before; None if that is not known."""
    taken: float = 0.0
    """Rows taken, a second, over the window."""

    @property
    def steady(self) -> bool:
        """Whether the rate is about what it was."""
        before = self.rate if self.rate_before is None else self.rate_before
        return abs(self.rate - before) <= STEADY * max(self.rate, before)


@dataclass(frozen=True)
class MeasuredWorker:
    """A worker, over the window."""

    id: WorkerId
    slots: int
    """Tasks that it runs at once."""
    cpu: float = 0.0
    """The share of its processors in use, by whatever process; 0 to 1."""
    queue_rows: float = 0.0
    """Rows that wait for its instances."""
    host: str = ""


@dataclass(frozen=True)
class Slice:
    """One slice of one operator, over the window."""

    operator: str
    number: SliceId
    owner: WorkerId
    rate: float
    """Rows that reached it, a second."""
    load_s: float = 0.0
    """The share of its instance's useful time that is due to it, a second."""


@dataclass(frozen=True)
class HotKey:
    """A key that stands out among those of an operator."""

    operator: str
    slice: SliceId
    key: str
    """As JSON: its columns in a list."""
    rate: float
    """Rows a second, by a sample."""


@dataclass(frozen=True)
class Snapshot:
    """One window: the graph, what was measured, and who owned what."""

    at: float
    """Its end, in seconds since the Unix epoch."""
    window_s: float
    epochs: int
    """Epochs that ended in the window."""
    sources: tuple[Source, ...]
    edges: tuple[Edge, ...]
    instances: tuple[Instance, ...]
    workers: tuple[MeasuredWorker, ...]
    """Clockwise around the ring."""
    slices: tuple[Slice, ...] = ()
    traffic: Mapping[tuple[str, WorkerId, SliceId], float] = field(default_factory=dict)
    """By operator, the worker that sent and the slice that received: bytes a second from one operator to the next."""
    hot_keys: tuple[HotKey, ...] = ()
    """The hottest first."""
    shed: Mapping[str, float] = field(default_factory=dict)
    """By operator: rows a second of those before it that it was spared."""
    pause_s: float = 0.0
    """The longest pause that a migration of this app has taken so far."""
    epoch_s: float = 0.0
    """How long an epoch took, on average."""

    @cached_property
    def operators(self) -> dict[str, tuple[Instance, ...]]:
        """By operator, upstream first: its instances."""
        found: dict[str, list[Instance]] = {name: [] for name in self._in_order()}
        for instance in self.instances:
            found.setdefault(instance.operator, []).append(instance)
        return {name: tuple(instances) for name, instances in found.items() if instances}

    @property
    def arriving(self) -> float:
        """Rows a second that fell due at all sources."""
        return sum(source.rate for source in self.sources)

    @property
    def lag_rows(self) -> float:
        return sum(source.lag_rows for source in self.sources)

    @property
    def lag_s(self) -> float:
        return max((source.lag_s for source in self.sources), default=0.0)

    def parents(self, operator: str) -> list[Edge]:
        """Where an operator's rows come from."""
        return [edge for edge in self.edges if edge.downstream == operator]

    def check(self) -> None:
        """BadSnapshot if anything in it is no number."""
        for of, metric, value in self._numbers():
            if not isinstance(value, int | float) or math.isnan(value) or math.isinf(value) or value < 0:
                raise BadSnapshot(metric, of, value)

    def _numbers(self) -> Iterator[tuple[str, str, float]]:
        yield from (("the window", name, getattr(self, name)) for name in ("window_s", "pause_s", "epoch_s"))
        for source in self.sources:
            of = f"source {source.name!r}"
            yield from ((of, name, getattr(source, name)) for name in ("rate", "lag_rows", "lag_s"))
        for edge in self.edges:
            yield f"rows from {edge.upstream!r} to {edge.downstream!r}", "ratio", edge.ratio
        for i in self.instances:
            if i.sound:
                continue
            of = f"instance {i.number} of step {i.operator!r}"
            names = ("useful_s", "records_in", "records_out", "queue_rows", "cpu_s")
            yield from ((of, name, getattr(i, name)) for name in names)
        for worker in self.workers:
            yield from ((f"worker {worker.id}", name, getattr(worker, name)) for name in ("cpu", "queue_rows"))

    def _in_order(self) -> list[str]:
        """Operators so that each comes after those that feed it."""
        feeding: dict[str, set[str]] = {}
        for edge in self.edges:
            feeding.setdefault(edge.downstream, set()).add(edge.upstream)
        order: list[str] = []
        placed = {source.name for source in self.sources}
        while feeding:
            ready = [name for name, parents in feeding.items() if not (parents - placed) & feeding.keys()]
            if not ready:
                raise BadValue(f"the graph goes round in a circle through {sorted(feeding)}")
            for name in ready:
                order.append(name)
                placed.add(name)
                del feeding[name]
        return order
