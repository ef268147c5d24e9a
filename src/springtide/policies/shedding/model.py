"""All that the controller may know, measured over one cycle. CPU is in cores: 1.0 is one full core."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from springtide.policies.shedding.graph import BadModel, Graph

Edge = tuple[str, str]
"""A task and one that it feeds."""
InstanceKey = tuple[str, int]
"""A task and the number of one of its instances."""


class TaskInstance(NamedTuple):
    """One instance of one task."""

    task: str
    number: int
    worker: str
    in_rate: float
    """Rows a second that it took in: after what was shed before it."""
    cpu: float
    """Cores in use."""

    @property
    def key(self) -> InstanceKey:
        return self.task, self.number


@dataclass(frozen=True)
class Machine:
    """A worker: where instances run."""

    id: str
    cores: float
    """What may be in use, by whatever process; less than there is, if some is to stay free."""
    cpu_in_use: float = 0.0
    """By whatever process, tasks and others."""

    def __post_init__(self) -> None:
        for what, cores in (("cores", self.cores), ("cpu_in_use", self.cpu_in_use)):
            if not 0 <= cores < math.inf:
                raise BadModel(f"{what} of worker {self.id!r}", "a number that is not negative", cores)


@dataclass(frozen=True)
class Model:
    """One cycle: the graph, who runs where, and what was measured."""

    graph: Graph
    machines: tuple[Machine, ...]
    instances: tuple[TaskInstance, ...]
    out_rates: Mapping[Edge, float]
    """Rows a second that a task had for the next one, before any of them were shed."""
    offered: Mapping[str, float]
    """By source: rows a second that fell due."""
    known_cpu: Mapping[str, float] = field(default_factory=dict)
    """By task: the cores that an instance takes at full accuracy, as told by the decision before."""

    def __post_init__(self) -> None:
        self._check_rates()
        if len(self.machine_index) < len(self.machines):
            raise BadModel("the workers", "a name of its own for each", [machine.id for machine in self.machines])
        for task, found in zip(self.graph.tasks, self.instances_of, strict=True):
            if not found:
                raise BadModel(f"task {task.name!r}", "an instance", ())
        if len({instance[:2] for instance in self.instances}) < len(self.instances):
            raise BadModel("the instances of a task", "a number of its own for each", self._twice())
        most = math.inf
        for instance in self.instances:
            if not (0 <= instance[3] < most and 0 <= instance[4] < most):
                what = f"in_rate and cpu of instance {instance.number} of task {instance.task!r}"
                raise BadModel(what, "numbers that are not negative", (instance.in_rate, instance.cpu))

    def _twice(self) -> InstanceKey:
        keys = [instance.key for instance in self.instances]
        return next(key for key in keys if keys.count(key) > 1)

    def _check_rates(self) -> None:
        for task, rates in zip(self.graph.tasks, self.rates_before, strict=True):
            for before, rate in zip(task[1] or (None,), rates, strict=True):
                if rate is None or not 0 <= rate < math.inf:
                    what = f"offered rate of source {task.name!r}" if before is None else "output rate"
                    between = "" if before is None else f" of {before!r} to {task.name!r}"
                    raise BadModel(what + between, "rows a second, not negative", rate)

    @cached_property
    def rates_before(self) -> list[tuple[float, ...]]:
        """By task: what each of its upstreams had for it, or what the source was offered."""
        out, offered = self.out_rates.get, self.offered.get
        found: list[tuple[float | None, ...]] = [
            tuple([out((before, name)) for before in upstream]) if upstream else (offered(name),)
            for name, upstream, *_ in self.graph.tasks
        ]
        return found  # type: ignore[return-value]  # checked when the model is made

    @cached_property
    def machine_index(self) -> Mapping[str, int]:
        return {machine.id: number for number, machine in enumerate(self.machines)}

    @cached_property
    def instances_of(self) -> list[list[TaskInstance]]:
        """By task."""
        index = self.graph.index
        found: list[list[TaskInstance]] = [[] for _ in index]
        for instance in self.instances:
            task = index.get(instance[0])
            if task is None:
                raise BadModel(f"instance {instance.number}", "a task of the graph", instance.task)
            found[task].append(instance)
        return found

    @cached_property
    def places(self) -> list[list[int]]:
        """By task: the machine of each instance."""
        index = self.machine_index
        try:
            return [[index[instance[2]] for instance in found] for found in self.instances_of]
        except KeyError:
            strange = next(instance for instance in self.instances if instance.worker not in index)
            what = f"worker of instance {strange.number} of task {strange.task!r}"
            raise BadModel(what, f"one of {sorted(index)}", strange.worker) from None

    @cached_property
    def available(self) -> list[float]:
        """By machine: the cores that tasks may use; other processes keep theirs."""
        tasks = [0.0] * len(self.machines)
        for found, places in zip(self.instances_of, self.places, strict=True):
            for instance, place in zip(found, places, strict=True):
                tasks[place] += instance[4]
        return [
            max(0.0, machine.cores - max(0.0, machine.cpu_in_use - used))
            for machine, used in zip(self.machines, tasks, strict=True)
        ]
