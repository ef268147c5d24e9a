"""A cluster as a fluid: load flows through tasks on machines that share their cores, and a controller tunes it.

What a machine cannot work on piles up at the sources, and all tasks on it go slower alike: nothing here helps a high
priority but the controller's decisions. A moved instance runs at half speed in its first cycle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from streams import inputs

from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.model import InstanceKey, Machine, Model, TaskInstance
from springtide.policies.shedding.scheduler import place_all
from springtide.policies.shedding.verdict import QodDecision
from springtide.policies.shedding.warmup import WarmUp, still_warming

CYCLE_S = 5.0
HEADROOM = 0.05
"""The share of a machine that the controller is not told of, so that a load that grows does not pile up in between."""


@dataclass(frozen=True)
class Cycle:
    """What was measured in one cycle, and what followed from it."""

    accuracy: Mapping[str, float]
    """By query, in truth."""
    lag_s: float
    """The longest of the sources: what has piled up, in seconds of its load."""
    warming: frozenset[InstanceKey]
    where: Mapping[InstanceKey, str]
    decision: QodDecision


@dataclass
class Fluid:
    """Runs cycle by cycle."""

    graph: TaskGraph
    cost: Mapping[str, float]
    """By task: the cores of one instance for a thousand rows a second offered to each source."""
    where: dict[InstanceKey, str]
    cores: dict[str, float]
    others: dict[str, float] = field(default_factory=dict)
    now_s: float = 0.0
    warmups: tuple[WarmUp, ...] = ()
    started: set[InstanceKey] = field(default_factory=set)
    cpu: Mapping[InstanceKey, float] = field(default_factory=dict)
    """By instance: cores in use in the last cycle."""
    lag: dict[str, float] = field(default_factory=dict)
    last: QodDecision | None = None
    past: list[Cycle] = field(default_factory=list)

    def start(self, graph: TaskGraph, cost: Mapping[str, float], instances: Mapping[str, int], seed: int = 1) -> None:
        """One more app: its instances go where the scheduler puts them."""
        self.graph = TaskGraph(self.graph.tasks + graph.tasks, self.graph.queries + graph.queries)
        self.cost = {**self.cost, **cost}
        keys = [(name, number) for name, size in instances.items() for number in range(size)]
        found = place_all([(None, ())] * len(keys), self._machines(self.cpu), Random(seed))
        self.where |= {key: worker for key, worker in zip(keys, found, strict=True) if worker is not None}
        self._warm(keys)

    def run(self, offered: Mapping[str, float]) -> Cycle:
        """One cycle at a rate, in rows a second."""
        speed, accuracy, self.cpu = self._flow(offered)
        model = self._measured(offered, accuracy, self.cpu)
        self._pile_up(offered, speed)
        self.now_s += CYCLE_S
        self.warmups = still_warming(self.warmups, model, self.now_s)
        warming = frozenset(each.key for each in self.warmups)
        self.last = decide(model, warming)
        where = dict(self.where)
        self.started = set()
        for move in self.last.moves:
            self.where[move.instance] = move.target
            self._warm([move.instance])
        queries = {query.name: accuracy[query.name] for query in self.graph.queries}
        lag_s = max(rows / offered[source] for source, rows in self.lag.items())
        self.past.append(Cycle(queries, lag_s, warming, where, self.last))
        return self.past[-1]

    def _warm(self, keys: list[InstanceKey]) -> None:
        self.started |= set(keys)
        self.warmups += tuple(WarmUp(key, self.now_s) for key in keys)

    def _wanted(self, offered: Mapping[str, float]) -> dict[InstanceKey, float]:
        """By instance: the cores that it takes to keep up with what the shedders let through."""
        full = inputs(self.graph, offered)
        alone = inputs(self.graph, dict.fromkeys(offered, 1_000.0))
        kept = self.last.task_accuracy if self.last else {}
        return {key: self.cost[key[0]] * full[key[0]] / alone[key[0]] * kept.get(key[0], 1.0) for key in self.where}

    def _flow(
        self, offered: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float], dict[InstanceKey, float]]:
        """By task how fast it goes, of what it should, and its accuracy; by instance its CPU."""
        wanted = self._wanted(offered)
        load = dict(self.others)
        for key, worker in self.where.items():
            load[worker] = load.get(worker, 0.0) + wanted[key]
        slow = {worker: min(1.0, self.cores[worker] / used) if used else 1.0 for worker, used in load.items()}
        speed = dict.fromkeys(self.graph.names, 1.0)
        for key, worker in self.where.items():
            own = min(slow[worker], 1 / max(1.0, wanted[key])) * (0.5 if key in self.started else 1.0)
            speed[key[0]] = min(speed[key[0]], own)
        accuracy: dict[str, float] = {}
        kept = self.last.task_accuracy if self.last else {}
        so_far: dict[str, float] = {}
        for layer, _ in self.graph.layers:
            for number in layer.tolist():
                task = self.graph.tasks[number]
                so_far[task.name] = speed[task.name] * min((so_far[u] for u in task.upstream), default=1.0)
                accuracy[task.name] = kept.get(task.name, 1.0) * so_far[task.name]
        return speed, accuracy, {key: cpu * so_far[key[0]] for key, cpu in wanted.items()}

    def _measured(
        self, offered: Mapping[str, float], accuracy: Mapping[str, float], cpu: Mapping[InstanceKey, float]
    ) -> Model:
        full = inputs(self.graph, offered)
        size = {name: sum(key[0] == name for key in self.where) for name in self.graph.names}
        instances = tuple(
            TaskInstance(task, number, worker, accuracy[task] * full[task] / size[task], cpu[task, number])
            for (task, number), worker in self.where.items()
        )
        out = {(u, t): accuracy[u] * full[u] for u, t in self.graph.edges}
        known = self.last.full_cpu if self.last else {}
        return Model(self.graph, self._machines(cpu), instances, out, offered, known)

    def _machines(self, cpu: Mapping[InstanceKey, float]) -> tuple[Machine, ...]:
        used = {worker: self.others.get(worker, 0.0) for worker in self.cores}
        for key, worker in self.where.items():
            used[worker] += cpu.get(key, 0.0)
        return tuple(Machine(name, (1 - HEADROOM) * cores, used[name]) for name, cores in self.cores.items())

    def _pile_up(self, offered: Mapping[str, float], speed: Mapping[str, float]) -> None:
        """A source waits for the slowest task after it; what has piled up goes when there is room again."""
        for source in offered:
            after, waiting = {source}, [source]
            while waiting:
                before = waiting.pop()
                more = [task.name for task in self.graph.tasks if before in task.upstream]
                waiting += [name for name in more if name not in after]
                after |= set(more)
            slowest = min(speed[name] for name in after)
            change = (1 - slowest) if slowest < 1 else -0.2
            self.lag[source] = max(0.0, self.lag.get(source, 0.0) + offered[source] * CYCLE_S * change)
