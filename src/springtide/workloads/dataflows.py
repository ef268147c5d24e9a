"""The dataflows that migrations are measured on, as values: tasks, who feeds whom, and what follows from that.

They are those of Shukla and Simmhan, "Toward Reliable and Rapid Elasticity for Streaming Dataflows on Clouds": three
small patterns and two applications, with a source of 8 events a second. Every task gives one event for one that it
gets, and each of its consumers gets that event. How many tasks and instances a dataflow has is the paper's; the
paper draws its graphs and does not spell them out, so the shapes of Grid and Traffic, and all names, are ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from springtide.dataflow.errors import BadGraph

EVENTS_S = 8.0
"""Events a second of the source; a task has one instance for each eight that reach it in a second."""
SOURCE = "source"


@dataclass(frozen=True)
class Task:
    """A task, and those whose events it gets: other tasks or the source."""

    name: str
    parents: tuple[str, ...] = (SOURCE,)


@dataclass(frozen=True)
class Sizes:
    """A dataflow's line in the paper's table 1: what it has, and the machines that it is moved between."""

    tasks: int
    instances: int
    """Each takes a slot."""
    default_vms: int
    """Of 2 slots: where it starts."""
    scale_in_vms: int
    """Of 4 slots."""
    scale_out_vms: int
    """Of 1 slot."""


@dataclass(frozen=True)
class Dataflow:
    """Tasks from one source to one sink, parents first. The sink takes from the tasks that feed no other."""

    name: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise BadGraph(self.name, "at least one task", "none")
        known = {SOURCE}
        for task in self.tasks:
            if task.name in known:
                raise BadGraph(task.name, "a name of its own", "a name that another task or the source has already")
            if not task.parents or not known.issuperset(task.parents):
                raise BadGraph(task.name, f"parents among {sorted(known)}", repr(task.parents))
            if len(set(task.parents)) != len(task.parents):
                raise BadGraph(task.name, "each parent once", repr(task.parents))
            known.add(task.name)

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """By task, and for the source: the tasks that get its events."""
        names = (SOURCE, *(task.name for task in self.tasks))
        return {name: tuple(task.name for task in self.tasks if name in task.parents) for name in names}

    @cached_property
    def last(self) -> tuple[str, ...]:
        """The tasks that the sink takes from."""
        return tuple(task.name for task in self.tasks if not self.consumers[task.name])

    @cached_property
    def copies(self) -> Mapping[str, int]:
        """By task: how many copies of each event reach it, one by every way from the source."""
        found = {SOURCE: 1}
        for task in self.tasks:
            found[task.name] = sum(found[parent] for parent in task.parents)
        return found

    @property
    def copies_at_sink(self) -> int:
        """How many copies of each event reach the sink."""
        return sum(self.copies[name] for name in self.last)

    def input_events_s(self, task: str, events_s: float = EVENTS_S) -> float:
        """What reaches a task in a second if the source gives `events_s`."""
        return self.copies[task] * events_s

    def instances(self, task: str, events_s: float = EVENTS_S) -> int:
        """One for each 8 events a second."""
        return ceil(self.input_events_s(task, events_s) / EVENTS_S)

    @cached_property
    def critical_path(self) -> tuple[str, ...]:
        """The longest way from the source to the sink."""
        longest: dict[str, tuple[str, ...]] = {SOURCE: ()}
        for task in self.tasks:
            longest[task.name] = (*max((longest[parent] for parent in task.parents), key=len), task.name)
        return max((longest[name] for name in self.last), key=len)

    def sizes(self) -> Sizes:
        """How large it is, and how many machines it takes before and after a migration."""
        slots = sum(self.instances(task.name) for task in self.tasks)
        default = ceil(slots / 2)
        return Sizes(len(self.tasks), slots, default, ceil(default / 2), slots)

    @property
    def numbered(self) -> Iterator[tuple[int, Task]]:
        """The tasks with their numbers, from 1."""
        return enumerate(self.tasks, 1)


def linear(tasks: int) -> Dataflow:
    """The number of tasks in a row."""
    parents = (SOURCE, *(f"task-{number}" for number in range(1, tasks)))
    row = tuple(Task(f"task-{number}", (parent,)) for number, parent in enumerate(parents, 1))
    return Dataflow("linear" if tasks == 5 else f"linear-{tasks}", row)


LINEAR = linear(5)

DIAMOND = Dataflow(
    "diamond",
    (
        Task("side-1"),
        Task("side-2"),
        Task("side-3"),
        Task("side-4"),
        Task("meet", ("side-1", "side-2", "side-3", "side-4")),
    ),
)

STAR = Dataflow(
    "star",
    (
        Task("in-1"),
        Task("in-2"),
        Task("hub", ("in-1", "in-2")),
        Task("out-1", ("hub",)),
        Task("out-2", ("hub",)),
    ),
)

GRID = Dataflow(
    "grid",
    (
        # Electricity meters: readings that are right, without gaps, and of a known customer.
        Task("meter-parse"),
        Task("meter-check", ("meter-parse",)),
        Task("meter-fill", ("meter-check",)),
        Task("meter-annotate", ("meter-fill",)),
        Task("usage-profile", ("meter-annotate",)),
        # The weather, at the times of the readings.
        Task("weather-parse"),
        Task("weather-check", ("weather-parse",)),
        Task("weather-align", ("weather-check",)),
        Task("degree-days", ("weather-align",)),
        # What will be used, from what a reading and the weather have in common.
        Task("regression-features", ("meter-annotate", "weather-align")),
        Task("regression-tree", ("regression-features",)),
        Task("demand-forecast", ("regression-tree",)),
        # What will be used, from how usage went on before.
        Task("series-features", ("usage-profile", "degree-days")),
        Task("time-series", ("series-features",)),
        Task("peak-alert", ("time-series",)),
    ),
)

TRAFFIC = Dataflow(
    "traffic",
    (
        Task("gps-parse"),
        Task("gps-check", ("gps-parse",)),
        Task("map-match", ("gps-check",)),
        # How a road does.
        Task("road-speed", ("map-match",)),
        Task("smooth-speed", ("road-speed",)),
        Task("road-flow", ("map-match",)),
        Task("congestion", ("smooth-speed", "road-flow")),
        Task("travel-time", ("congestion",)),
        # Where vehicles go, and where they stand.
        Task("trips", ("map-match",)),
        Task("origin-destination", ("trips",)),
        Task("standstill", ("map-match",)),
    ),
)

DATAFLOWS = {dataflow.name: dataflow for dataflow in (LINEAR, DIAMOND, STAR, GRID, TRAFFIC)}
"""The paper's five, by name."""
