"""How long the quality-of-data controller takes for one cycle, from plain records to a decision.

Nothing runs; the records are made up: Taxi Drives many times over, two streams that a light and a heavy query share.
The published controller's time is beside it. Other measurements of the controller can add their fields and rows:
they are given as `beside`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from random import Random
from statistics import median, quantiles
from typing import Any

from springtide.bench.harness.findings import Figure, Findings, rounded
from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.model import Machine, Model, TaskInstance
from springtide.policies.shedding.verdict import QodDecision

LIMIT_MS = 20.0
"""A cycle about the most tasks should take less."""
PUBLISHED_MS = 115.0
"""The median of Stream Economics' own controller with 2 000 tasks on 2 machines."""
TASKS_AN_APP = 4


@dataclass(frozen=True)
class Records:
    """What a controller is handed in one cycle, as it comes from reports."""

    tasks: list[tuple[str, tuple[str, ...], tuple[str, ...], bool]] = field(default_factory=list)
    queries: list[tuple[str, int, float]] = field(default_factory=list)
    instances: list[tuple[str, int, str, float, float]] = field(default_factory=list)
    machines: list[tuple[str, float, float]] = field(default_factory=list)
    out_rates: dict[tuple[str, str], float] = field(default_factory=dict)
    offered: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Beside:
    """Another measurement of the controller: fields for the JSON line, rows for the table."""

    figures: Mapping[str, Figure]
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class QodBench:
    """Cycles with more and more tasks, on few machines and on many: calm, overloaded, or too small for the minima."""

    tasks: tuple[int, ...] = (100, 500, 1000, 2000)
    machines: tuple[int, ...] = (2, 50)
    rounds: int = 40
    seed: int = 7
    beside: Sequence[Callable[[], Beside]] = ()
    """Measured afterwards."""

    def run(self) -> Findings:
        times = {
            (tasks, machines): self._slowest(tasks, machines) for machines in self.machines for tasks in self.tasks
        }
        most = max(self.tasks)
        figures: dict[str, Figure] = {
            "cycle_ms": rounded(max(median(times[most, machines].wall_ms) for machines in self.machines)),
            "cycle_p95_ms": rounded(max(_p95(times[most, machines].wall_ms) for machines in self.machines)),
            "cycle_cpu_ms": rounded(max(median(times[most, machines].cpu_ms) for machines in self.machines)),
            "limit_ms": LIMIT_MS,
            "published_ms": PUBLISHED_MS,
            "tasks": most,
            "rounds": self.rounds,
        }
        for (tasks, machines), found in times.items():
            figures[f"cycle_ms_{tasks}_tasks_{machines}_machines"] = rounded(median(found.wall_ms))
        rows = [
            [
                f"{tasks} tasks on {machines} machines",
                *(f"{value:.2f}" for value in (median(found.wall_ms), _p95(found.wall_ms), median(found.cpu_ms))),
            ]
            for (tasks, machines), found in times.items()
        ]
        rows.append(["published: 2000 tasks on 2 machines", f"{PUBLISHED_MS:.0f}", "", ""])
        for measure in self.beside:
            other = measure()
            figures |= other.figures
            rows += [list(row) for row in other.rows]
        return Findings("qod", ["one cycle", "median ms", "p95 ms", "CPU ms"], rows, figures, self._draw(times))

    def _draw(self, times: dict[tuple[int, int], "Times"]) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            for machines in self.machines:
                found = [median(times[tasks, machines].wall_ms) for tasks in self.tasks]
                axes.plot(self.tasks, found, marker="o", label=f"{machines} machines")
            axes.axhline(LIMIT_MS, linestyle="--", color="grey", label="limit")
            axes.plot([2000], [PUBLISHED_MS], marker="x", linestyle="", color="black", label="published, 2 machines")
            axes.set(title="One cycle of the QoD controller", xlabel="tasks", ylabel="ms", yscale="log")
            axes.legend()

        return draw

    def _slowest(self, tasks: int, machines: int) -> "Times":
        """The times of the situation that takes longest."""
        situations = [records(tasks, machines, room, self.seed) for room in (1.5, 0.7, 0.4)]
        found = [Times() for _ in situations]
        before: dict[int, TaskGraph] = {}
        for number in range(self.rounds):
            for which, (situation, times) in enumerate(zip(situations, found, strict=True)):
                wall, cpu = time.perf_counter(), time.thread_time()
                before[which] = cycle(situation, before.get(which))[0]
                if number:  # The first ones warm up.
                    times.wall_ms.append(1000 * (time.perf_counter() - wall))
                    times.cpu_ms.append(1000 * (time.thread_time() - cpu))
        return max(found, key=lambda times: median(times.cpu_ms))


@dataclass(frozen=True)
class Times:
    """Of many cycles: by the clock, and without what other processes of the machine took meanwhile."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


def cycle(given: Records, before: TaskGraph | None = None) -> tuple[TaskGraph, QodDecision]:
    """One cycle, from the records to the decision and its causes, after one with the graph `before`: what is timed."""
    graph = TaskGraph.since(before, given.tasks, given.queries)
    model = Model(
        graph,
        tuple([Machine(*machine) for machine in given.machines]),
        tuple(starmap(TaskInstance, given.instances)),
        given.out_rates,
        given.offered,
    )
    decision = decide(model)
    _ = decision.shed  # Worked out when asked for, and the economy asks in every cycle.
    return graph, decision


def records(tasks: int, machines: int, room: float, seed: int) -> Records:
    """Apps on machines that have this many cores for each one that all tasks would like to use.

    The minima take a little less than half; with less room than that instances have to move, as far as some fit.
    """
    random = Random(seed)
    found = Records()
    used = [0.0] * machines
    needed = 0.0
    accuracy = min(1.0, 0.9 * room)
    for app in range(tasks // TASKS_AN_APP):
        name = f"app{app}"
        light, heavy = f"{name}/light", f"{name}/heavy"
        streams = (f"{name}/trips", f"{name}/fares")
        priority = random.randrange(3)
        found.queries.append((light, priority, 0.4))
        found.queries.append((heavy, priority + random.randrange(2), 0.6))
        found.tasks.extend((stream, (), (), True) for stream in streams)
        found.tasks.append((light, streams, (light,), True))
        found.tasks.append((heavy, streams, (heavy,), True))
        rates = [random.uniform(500, 1_500) for _ in streams]
        for stream, rate in zip(streams, rates, strict=True):
            found.offered[stream] = rate
            found.out_rates[stream, light] = found.out_rates[stream, heavy] = rate * accuracy
        total = sum(rates) * accuracy
        for task, copies, rate, cpu in (
            *((stream, 1, rate * accuracy, 0.05) for stream, rate in zip(streams, rates, strict=True)),
            (light, 1, total, random.uniform(0.1, 0.5)),
            (heavy, 2, total / 2, random.uniform(0.2, 0.9)),
        ):
            for number in range(copies):
                where = random.randrange(machines)
                used[where] += cpu * accuracy
                needed += cpu
                found.instances.append((task, number, f"w{where}", rate, cpu * accuracy))
    cores = room * needed / machines
    found.machines.extend((f"w{number}", cores, cpu) for number, cpu in enumerate(used))
    return found


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
