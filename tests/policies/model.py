"""A modelled dataflow: what would be measured with given instances of each step, or on given workers.

All sources are held back alike by the slowest step, as in an epoch. A rate of an instance falls with their
number as `p ** -falls`: 0 is linear scaling.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from springtide.ids import WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Snapshot, Source
from springtide.policies.decision import Decision, Hold, Scale
from springtide.policies.past import AppState, Entry, Past
from springtide.policies.policy import Policy

WINDOW_S = 10.0
EVERY_S = 60.0
"""Between two decisions."""


@dataclass(frozen=True)
class Step:
    """Rows a second that one instance alone can process, and rows pushed for each one."""

    rate: float
    selectivity: float = 1.0


@dataclass(frozen=True)
class Flow:
    """A graph of steps, which are upstream first."""

    sources: Mapping[str, float]
    steps: Mapping[str, Step]
    edges: tuple[Edge, ...]
    slots: int = 1
    falls: float = field(default=0.0, kw_only=True)

    def demand(self) -> dict[str, float]:
        """Rows a second that reach each step if all keep up."""
        pushed = dict(self.sources)
        reaching = {}
        for name, step in self.steps.items():
            reaching[name] = sum(pushed[e.upstream] * e.ratio for e in self.edges if e.downstream == name)
            pushed[name] = reaching[name] * step.selectivity
        return reaching

    def each(self, name: str, instances: int) -> float:
        """The true rate of one of this number of instances."""
        return self.steps[name].rate * instances**-self.falls

    def served(self, parallelism: Mapping[str, int]) -> float:
        """The share of the sources' rows that these instances, each with a slot to itself, can take."""
        demand = self.demand()
        shares = [p * self.each(name, p) / demand[name] for name, p in parallelism.items() if demand[name] > 0]
        return min([1.0, *shares])

    def apart(self, parallelism: Mapping[str, int], at: float = 0.0, workers: int | None = None) -> Snapshot:
        """Every instance has a slot to itself."""
        fitting = math.ceil(sum(parallelism.values()) / self.slots)
        return self._snapshot(parallelism, self.served(parallelism), workers or fitting, at)

    def sharing(self, workers: int, at: float = 0.0) -> Snapshot:
        """Every step has as many instances as there are slots, which they share in time, as on Spark."""
        slots = workers * self.slots
        busy = sum(rate / self.each(name, slots) for name, rate in self.demand().items())
        return self._snapshot(dict.fromkeys(self.steps, slots), min(1.0, slots / busy) if busy else 1.0, workers, at)

    def times(self, factor: float) -> "Flow":
        """The same flow with other rates of its sources."""
        return replace(self, sources={name: rate * factor for name, rate in self.sources.items()})

    def _snapshot(self, parallelism: Mapping[str, int], served: float, workers: int, at: float) -> Snapshot:
        demand = self.demand()
        instances = []
        for name, p in parallelism.items():
            rows = demand[name] * served * WINDOW_S / p
            useful_s = rows / self.each(name, p)
            for number in range(p):
                worker = WorkerId(f"w{number % workers}")
                pushed = rows * self.steps[name].selectivity
                instances.append(Instance(name, number, worker, useful_s, rows, pushed, cpu_s=useful_s))
        late_s = (1 - served) * WINDOW_S
        return Snapshot(
            at,
            WINDOW_S,
            10,
            tuple(Source(name, rate, rate * late_s, late_s) for name, rate in self.sources.items()),
            self.edges,
            tuple(instances),
            tuple(MeasuredWorker(WorkerId(f"w{i}"), self.slots) for i in range(workers)),
        )


def line(rate: float, *steps: Step, slots: int = 1, falls: float = 0.0) -> Flow:
    """One source and its steps `a`, `b`, … one after the other."""
    names = "abcdefgh"[: len(steps)]
    edges = tuple(Edge(before, name) for before, name in zip(["rows", *names], names, strict=False))
    return Flow({"rows": rate}, dict(zip(names, steps, strict=True)), edges, slots, falls=falls)


LECTURE = line(2_000, Step(500, 3.8), Step(2_930 / 3, 600 / 2_930))
"""The worked example of the lecture: the steps need 4 and 7.78 instances."""


def gauge(snapshot: Snapshot, served: float) -> AppState:
    arriving = snapshot.arriving
    return AppState(len(snapshot.workers), arriving * served, arriving, snapshot.lag_s, snapshot.lag_rows)


def changes(policy: Policy, flow: Flow, start: Mapping[str, int], limit: int = 40) -> list[dict[str, int]]:
    """The parallelism after each change that a policy asks for, instances having slots of their own.

    Ends when it holds. A change helped if more rows were taken after it, or if none were left behind.
    """
    parallelism, workers = dict(start), math.ceil(sum(start.values()) / flow.slots)
    past: Past = ()
    found: list[dict[str, int]] = []
    for number in range(limit):
        at = number * EVERY_S
        snapshot = flow.apart(parallelism, at, workers)
        decision = policy(snapshot, past)
        if isinstance(decision, Hold):
            return found
        assert isinstance(decision, Scale)
        served = flow.served(parallelism)
        parallelism, workers = parallelism | dict(decision.parallelism), decision.workers
        after = flow.served(parallelism)
        past = (*past, entry(number, at, decision, gauge(snapshot, served), after > served or after == 1.0))
        found.append(parallelism)
    raise AssertionError(f"no end after {limit} changes: {found[-3:]}")


def entry(
    number: int, at: float, decision: Decision, before: AppState | None = None, helped: bool | None = None
) -> Entry:
    """A decision that was enacted at once."""
    return Entry(number, at, decision, decision, (), before, at, 0.0, "done", None, helped)
