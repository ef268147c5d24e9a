"""A dataflow of `workloads.dataflows` as an app: every task is a keyed step that counts, takes its time and hands on.

**How long a task may take.** In Storm all tasks work at once, each on another event: with 100 ms an event every task
by itself keeps up with 8 events a second, so the dataflow does. An epoch goes through the tasks level by level, and all
its rows are at one level at a time; what comes in meanwhile is the next epoch. So the service times *along the
longest way* have to fit into the time in which the epoch's rows came. With L tasks on that way, one instance for each
8 events a second and a service time s, they take `8 · L · s` of every second, and that has to be less than 1:

| | L | 100 ms | the limit of s | 5 ms |
| --- | --- | --- | --- | --- |
| Diamond | 2 | 1.6 | 63 ms | 0.08 |
| Star | 3 | 2.4 | 42 ms | 0.12 |
| Linear | 5 | 4.0 | 25 ms | 0.20 |
| Traffic | 7 | 5.6 | 18 ms | 0.28 |
| Grid | 8 | 6.4 | 16 ms | 0.32 |
| Linear, 50 tasks | 50 | 40 | 2.5 ms | 2.0 |

Below the limit an epoch that would take O without any service takes `O / (1 − 8 · L · s)`, so half the limit doubles
it. `occupancy` tells that share for any service times, and for tasks with other numbers of instances: the app has an
instance of every task on each worker. A sleeping task needs a slot and no core; where tasks of one level have more
instances than there are slots, they take turns, and the share is greater.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from springtide.app import App
from springtide.connectors import sinks, sources
from springtide.connectors.generator.rates import Rate
from springtide.dataflow.stream import Stream
from springtide.errors import BadValue
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced
from springtide.workloads.dataflows import EVENTS_S, SOURCE, Dataflow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SERVICE_S = 0.005
"""All five dataflows hold it with the paper's instances, and with a single one of each task."""
FACTOR = -7046029254386353131
"""Odd and with bits all over: ways through a dataflow differ in their `path`."""
Service = float | Mapping[str, float]
"""Seconds for each event: of every task, or by task."""


@dataclass(frozen=True)
class Work:
    """What a task does: it counts the events of each key, sleeps for each event, and hands each on. Runs on workers.

    `path` becomes that of the way so far; `seen` is the key's count at this task with this event; `tally` is the sum
    of all counts on the way, so that one which is wrong at any task shows at the sink.
    """

    number: int
    """Of the task, in its dataflow."""
    service_s: float
    sleep: Callable[[float], None] = time.sleep
    STATE: ClassVar = {"seen": int}
    OUTPUT: ClassVar = {"id": int, "key": int, "born": datetime, "path": int, "seen": int, "tally": int}

    def __call__(self, groups: Groups) -> Reduced:
        key = groups.group_of_row
        self.sleep(len(key) * self.service_s)
        # By key, and then by event: an epoch that is repeated counts its rows in the same order, however they come.
        order = np.lexsort((groups.rows["path"].to_numpy(), groups.rows["id"].to_numpy(), key))
        rows = groups.rows.take(pa.array(order))
        before = np.where(groups.known, groups.state["seen"].fill_null(0).to_numpy(), 0)
        seen = before[key] + np.arange(1, len(key) + 1) - groups.starts[key]
        output = pa.table(
            {
                "id": rows["id"],
                "key": rows["key"],
                "born": rows["born"],
                "path": rows["path"].to_numpy() * FACTOR + self.number,
                "seen": seen,
                "tally": rows["tally"].to_numpy() + seen,
            }
        )
        return Reduced(pa.table({"seen": before + np.bincount(key, minlength=len(groups))}), output)


def build(
    dataflow: Dataflow,
    *,
    source: Any = None,
    sink: sinks.SinkSpec | None = None,
    rate: Rate | float = EVENTS_S,
    service_s: Service = SERVICE_S,
    keys: int = 64,
) -> App:
    """The app of a dataflow. Its sink gets the rows of the last tasks: id, key, born, path, seen, tally.

    The source is a generator of `keys` keys at a rate, or one with the same columns: `id`, `key` and `due_time`. The
    service time may be given by task; a task that is not named has the default.
    """
    services = services_of(dataflow, service_s)
    app = App(dataflow.name)
    made = app.source(SOURCE, sources.generator(rate, keys=keys) if source is None else source)
    streams = {SOURCE: made.transform("events", events_of)}
    for number, task in dataflow.numbered:
        events = _together(f"to-{task.name}", [streams[parent] for parent in task.parents])
        work = Work(number, services[task.name])
        streams[task.name] = events.key_by("key").reduce_batches(task.name, work, state=Work.STATE, output=Work.OUTPUT)
    results = _together("results", [streams[name] for name in dataflow.last])
    results.sink("sink", sinks.console(top=8, by="seen") if sink is None else sink)
    return app


def events_of(rows: "DataFrame") -> "DataFrame":
    """Generated rows as events that no task has seen."""
    return rows.selectExpr("id", "key", "due_time AS born", "0L AS path", "0L AS seen", "0L AS tally")


def services_of(dataflow: Dataflow, service_s: Service) -> dict[str, float]:
    """The service time of each task."""
    names = [task.name for task in dataflow.tasks]
    given = service_s if isinstance(service_s, Mapping) else dict.fromkeys(names, service_s)
    if unknown := sorted(set(given) - set(names)):
        raise BadValue(f"dataflow {dataflow.name!r} has no tasks {unknown}: expected some of {names}")
    for name, seconds in given.items():
        if not (math.isfinite(seconds) and seconds >= 0):
            raise BadValue(f"task {name!r} needs a finite service time of 0 or more seconds, got {seconds!r}")
    return {name: given.get(name, SERVICE_S) for name in names}


def occupancy(
    dataflow: Dataflow, service_s: Service = SERVICE_S, *, instances: int | None = None, events_s: float = EVENTS_S
) -> float:
    """Seconds of service on the slowest way through a dataflow for each second of input; below 1 if it keeps up.

    Each task has this number of `instances`, or else those that the paper gives it; keys are taken to be spread evenly.
    """
    services = services_of(dataflow, service_s)
    slowest = {SOURCE: 0.0}
    for task in dataflow.tasks:
        share = dataflow.input_events_s(task.name, events_s) / (instances or dataflow.instances(task.name, events_s))
        slowest[task.name] = max(slowest[parent] for parent in task.parents) + share * services[task.name]
    return max(slowest[name] for name in dataflow.last)


def _together(name: str, streams: Sequence[Stream]) -> Stream:
    """One stream of all; a step of its own only where there are several."""
    first, *others = streams
    return first.union(name, *others) if others else first
