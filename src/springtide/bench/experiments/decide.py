"""How long a policy takes to decide about a large app: overloaded or calm, whichever takes it longer.

Nothing runs; the snapshots are made up.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from springtide.bench.harness.findings import Findings, rounded
from springtide.ids import SliceId, WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Slice, Snapshot, Source
from springtide.policies.guards import Stable
from springtide.policies.policy import Policy
from springtide.policies.registry import POLICIES, policy

LIMIT_MS = 20.0
"""A decision should take less."""
WINDOW_S = 10.0


@dataclass(frozen=True)
class DecideBench:
    """Operators one after the other, each with an instance on every slot; all workers send to all slices."""

    workers: int = 100
    slots: int = 2
    operators: int = 10
    slices: int = 256
    """Of each operator."""
    rounds: int = 50
    seed: int = 7

    def run(self) -> Findings:
        deciders: dict[str, Policy] = {name: policy(name) for name in POLICIES}
        deciders["guarded ds2"] = Stable(policy("ds2"))
        situations = [self._snapshot(hot=True), self._snapshot(hot=False)]
        times: dict[str, list[list[float]]] = {name: [[] for _ in situations] for name in deciders}
        for _ in range(self.rounds):
            for name, decider in deciders.items():
                for found, snapshot in zip(times[name], situations, strict=True):
                    found.append(_decide_ms(decider, snapshot))
        return self._findings({name: max(found, key=median) for name, found in times.items()})

    def _findings(self, times: dict[str, list[float]]) -> Findings:
        figures: dict[str, float | int | str] = {
            f"{name.replace(' ', '_')}_ms": rounded(median(found)) for name, found in times.items()
        }
        figures |= {
            "limit_ms": LIMIT_MS,
            "instances": self.workers * self.slots * self.operators,
            "workers": self.workers,
            "slices": self.slices * self.operators,
            "rounds": self.rounds,
        }
        rows = [[name, f"{median(found):.2f}", f"{max(found):.2f}"] for name, found in times.items()]

        def draw(axes: Any) -> None:
            axes.boxplot(list(times.values()), tick_labels=list(times), showfliers=False)
            axes.axhline(LIMIT_MS, linestyle="--", color="grey", label="limit")
            title = f"One decision about {figures['instances']:,} instances on {self.workers} workers"
            axes.set(title=title, ylabel="ms", ylim=(0, None))
            axes.legend()

        return Findings("decide", ["policy", "median ms", "longest ms"], rows, figures, draw)

    def _snapshot(self, *, hot: bool) -> Snapshot:
        """Under way; if it is hot, rows are late and some workers overloaded, else all have room."""
        random = np.random.default_rng(self.seed)
        ids = [WorkerId(f"w{i}") for i in range(self.workers)]
        names = [f"step{i}" for i in range(self.operators)]
        load = 0.9 if hot else 0.2
        overloaded = set(ids[::10]) if hot else set()
        workers = tuple(
            MeasuredWorker(w, self.slots, *((0.95, 50_000.0) if w in overloaded else (0.1, 10.0))) for w in ids
        )
        return Snapshot(
            1e9,
            WINDOW_S,
            10,
            (Source("rows", 1e6, 1e6 * hot, 20.0 * hot),),
            tuple(Edge(before, name) for before, name in zip(["rows", *names], names, strict=False)),
            tuple(self._instances(names, ids, load, random)),
            workers,
            tuple(self._slices(names, ids, random)),
            {
                (name, w, SliceId(s)): float(sent)
                for name in names
                for w in ids
                for s, sent in enumerate(random.gamma(1.0, 1e5, self.slices))
            },
            pause_s=0.5,
            epoch_s=1.0,
        )

    def _instances(
        self, names: list[str], ids: list[WorkerId], load: float, random: np.random.Generator
    ) -> Iterator[Instance]:
        slots = self.workers * self.slots
        for name in names:
            useful = WINDOW_S * load / self.operators * random.uniform(0.8, 1.2, slots)
            rows = WINDOW_S * 1e6 / slots * random.uniform(0.8, 1.2, slots)
            for number, (useful_s, n) in enumerate(zip(useful.tolist(), rows.tolist(), strict=True)):
                yield Instance(name, number, ids[number // self.slots], useful_s, n, n, cpu_s=useful_s)

    def _slices(self, names: list[str], ids: list[WorkerId], random: np.random.Generator) -> Iterator[Slice]:
        for name in names:
            rates = random.gamma(4.0, 1e6 / 4 / self.slices, self.slices).tolist()
            for s, rate in enumerate(rates):
                yield Slice(name, SliceId(s), ids[s * self.workers // self.slices], rate, rate / 1e5)


def _decide_ms(decider: Policy, snapshot: Snapshot) -> float:
    """On a snapshot that nobody has asked anything yet: what it has worked out is kept with it."""
    fresh = replace(snapshot)
    start = time.perf_counter()
    decider(fresh, ())
    return 1000 * (time.perf_counter() - start)
