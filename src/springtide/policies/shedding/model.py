"""All that the controller may know, measured over one cycle. CPU is in cores: 1.0 is one full core."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, floats, highest, ints, lowest, sound, total
from springtide.policies.shedding.graph import BadModel, TaskGraph

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
    floor: float = 0.0
    """Of these, the cores that it takes at whatever accuracy: what an epoch takes beside its rows, and rows to shed."""


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

    graph: TaskGraph
    machines: tuple[Machine, ...]
    instances: tuple[TaskInstance, ...]
    out_rates: Mapping[Edge, float]
    """Rows a second that a task had for the next one, before any of them were shed."""
    offered: Mapping[str, float]
    """By source: rows a second that fell due."""
    known_cpu: Mapping[str, float] = field(default_factory=dict)
    """By task: the cores that an instance takes at full accuracy, as told by the decision before."""

    def __post_init__(self) -> None:
        if len(self.machine_index) < len(self.machines):
            raise BadModel("the workers", "a name of its own for each", [machine.id for machine in self.machines])
        if len(set(self.keys)) < len(self.keys):
            twice = next(key for key in self.keys if self.keys.count(key) > 1)
            raise BadModel("the instances of a task", "a number of its own for each", twice)
        if not self.size.all():
            raise BadModel(f"task {self.graph.names[int(self.size.argmin())]!r}", "an instance", ())
        if not (sound(self.in_rate) and sound(self.cpu) and sound(self.floor)):
            bad = next(each for each in self.instances if not sound(floats(each[3:])))
            what = f"in_rate, cpu and floor of instance {bad.number} of task {bad.task!r}"
            raise BadModel(what, "numbers that are not negative", tuple(bad[3:]))
        if not sound(self.edge_rates):
            edge = self.graph.edges[int(np.argmin((self.edge_rates >= 0) & (self.edge_rates < math.inf)))]
            raise BadModel(f"output rate of {edge[0]!r} to {edge[1]!r}", "rows a second", self.out_rates.get(edge))
        if not sound(self.source_rates):
            for task in self.graph.layers[0][0].tolist():
                name = self.graph.names[task]
                if not sound(self.source_rates[task]):
                    raise BadModel(f"offered rate of source {name!r}", "rows a second", self.offered.get(name))

    @cached_property
    def _columns(self) -> tuple[tuple[Any, ...], ...]:
        """The fields of all instances, one after the other."""
        return tuple(zip(*self.instances, strict=True)) or ((),) * len(TaskInstance._fields)

    @cached_property
    def keys(self) -> list[InstanceKey]:
        """By instance."""
        return list(zip(self._columns[0], self._columns[1], strict=True))

    @cached_property
    def task(self) -> Ints:
        """By instance."""
        index = self.graph.index
        try:
            return ints(list(map(index.__getitem__, self._columns[0])))
        except KeyError as strange:
            raise BadModel("task of an instance", "a task of the graph", strange.args[0]) from None

    @cached_property
    def place(self) -> Ints:
        """By instance: the machine that it runs on."""
        index = self.machine_index
        try:
            return ints(list(map(index.__getitem__, self._columns[2])))
        except KeyError as strange:
            raise BadModel("worker of an instance", f"one of {sorted(index)}", strange.args[0]) from None

    @cached_property
    def in_rate(self) -> Floats:
        """By instance."""
        return floats(self._columns[3])

    @cached_property
    def cpu(self) -> Floats:
        """By instance."""
        return floats(self._columns[4])

    @cached_property
    def floor(self) -> Floats:
        """By instance."""
        return floats(self._columns[5])

    @cached_property
    def floors(self) -> Floats:
        """By task: the highest floor of its instances."""
        return highest(self.floor, self.task, len(self.graph.tasks))

    @cached_property
    def size(self) -> Ints:
        """By task: its instances."""
        return np.bincount(self.task, minlength=len(self.graph.tasks))

    def size_of(self, task: str) -> int:
        """The instances of a task, by its name."""
        return int(self.size[self.graph.index[task]])

    @cached_property
    def least(self) -> Floats:
        """By task: the rate of its slowest instance."""
        return lowest(self.in_rate, self.task, len(self.graph.tasks))

    @cached_property
    def machine_index(self) -> Mapping[str, int]:
        return {machine.id: number for number, machine in enumerate(self.machines)}

    @cached_property
    def edge_rates(self) -> Floats:
        """By edge: the output rate of the one task to the other; NaN where that is missing."""
        return floats(list(map(self.out_rates.get, self.graph.edges)))

    @cached_property
    def source_rates(self) -> Floats:
        """By task: what a source was offered, NaN where that is missing; 0 for others."""
        found = np.zeros(len(self.graph.tasks))
        sources = self.graph.layers[0][0]
        found[sources] = floats([self.offered.get(self.graph.names[task]) for task in sources.tolist()])
        return found

    @cached_property
    def available(self) -> Floats:
        """By machine: the cores that tasks may use for accuracy; other processes and floors keep theirs."""
        cores = floats([machine.cores for machine in self.machines])
        in_use = floats([machine.cpu_in_use for machine in self.machines])
        others = np.maximum(0.0, in_use - total(self.cpu, self.place, len(cores)))
        return np.maximum(0.0, cores - others - total(self.floor, self.place, len(cores)))
