"""One app as the economy sees it: what its steps cost, what is offered to it, and what can be changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from springtide.dataflow.economy import working_for
from springtide.dataflow.graph import Graph as Dataflow
from springtide.dataflow.graph import Keyed, Sink, Source
from springtide.engine.running import Running
from springtide.ids import InstanceId, WorkerId
from springtide.metrics.pace import EpochPace, beside_rows_s, pace
from springtide.metrics.snapshot import Snapshot
from springtide.metrics.snapshot import Worker as Measured
from springtide.metrics.window import Shape, observe
from springtide.migration.errors import Refused
from springtide.policies.shedding.graph import Query, Task
from springtide.policies.shedding.model import TaskInstance

LOOK_BACK = 32
"""Epochs that tell how long one takes."""
COLD = 3
"""The first epochs of a driver, many times as long as others: for a long time all would seem to take that long."""


@dataclass(frozen=True)
class Offer:
    """What one app brought to a cycle."""

    snapshot: Snapshot
    pace: EpochPace
    rates: Mapping[str, float]
    """By source: rows a second to be dealt with, those that wait too."""
    beside_s: Mapping[str, float]
    """By step: the useful time that it takes in every epoch, whatever its rows."""
    epoch_s: float
    """How long its epochs are to take."""


class Tenant:
    """One of the apps that share a cluster. Names of tasks and queries begin with the app's."""

    def __init__(self, app: str, graph: Dataflow, running: Running) -> None:
        self.app, self.graph, self._running = app, graph, running
        self.accuracy = {sink.name: 1.0 for sink in graph.of(Sink)}
        """By query: what it is to have from now on."""

    def task(self, step: str) -> str:
        return f"{self.app}/{step}"

    def step(self, task: str) -> str | None:
        """The step of a task; None if it is another app's."""
        app, _, step = task.rpartition("/")
        return step if app == self.app else None

    def queries(self) -> Iterator[Query]:
        for sink in self.graph.of(Sink):
            yield Query(self.task(sink.name), sink.restrictions.priority, sink.restrictions.minimum_accuracy)

    def tasks(self) -> Iterator[Task]:
        """Keyed steps, and stateless ones whose rows sinks take; others are part of those that they lead to."""
        leaving: dict[str, list[str]] = {}
        for sink in self.graph.of(Sink):
            for step in working_for(self.graph, sink):
                leaving.setdefault(step, []).append(self.task(sink.name))
        for step, producers in self.graph.feeders.items():
            keyed = sorted(self.task(p) for p in producers if isinstance(self.graph[p], Keyed))
            movable = isinstance(self.graph[step], Keyed)  # Others have no slices, and run where there is room.
            yield Task(self.task(step), tuple(keyed), tuple(leaving.get(step, ())), movable)

    def observe(self, cycle_s: float, epoch_s: float, longest_s: float) -> Offer | None:
        """The last cycle; None if there was too little to see, or a migration makes it hard to tell."""
        reports = self._running.reports[COLD:][-LOOK_BACK:]
        plan = self._running.plan
        workers = tuple(Measured(w.id, w.slots, host=w.host) for w in plan.workers)
        snapshot = observe(reports, Shape(_edges(self.graph), workers), cycle_s)
        if snapshot is None:
            return None
        real = [r for r in reports if not r.replayed]
        beside = {step: beside_rows_s(real, step) for step in self.graph.feeders}
        found = pace(real, _slots_at_work(snapshot), sum(beside.values()), self._running.cores)
        length_s = found.length_s(epoch_s, longest_s)
        usual_s = length_s + snapshot.epoch_s
        rates = {
            s.name: s.rate + max(0.0, s.lag_rows - s.rate * usual_s) / cycle_s for s in snapshot.sources
        }  # fmt: skip
        return Offer(snapshot, found, rates, beside, length_s)

    def instances(self, offer: Offer, *, among_others: bool = False) -> Iterator[TaskInstance]:
        """Instances with what they took in, and the cores that they need for it.

        The busiest instance of a step stands for all, as an epoch waits for it. What an epoch takes beside its rows
        makes each row dearer. So do cores that its instances leave idle, unless there are other apps to use them;
        that apps wait for one another is in the sum of what all need.
        """
        snapshot = offer.snapshot
        slots = _slots_at_work(snapshot)
        own = replace(offer.pace, cores=max(slots, offer.pace.cores)) if among_others else offer.pace
        dearer = slots / max(own.room(offer.epoch_s), 0.1)
        alone = snapshot.workers[0].id if len(snapshot.workers) == 1 else WorkerId("")
        known = {worker.id for worker in snapshot.workers}
        for step, found in snapshot.operators.items():
            if step not in self.graph.feeders:
                continue
            busy = [i for i in found if i.records_in] or found  # Who only stands by has none.
            beside_s = offer.beside_s[step] * snapshot.epochs / len(busy)
            for_rows_s = max(0.0, max(i.useful_s for i in busy) - beside_s)
            busiest = for_rows_s / snapshot.window_s * dearer
            taken = self._reaching(step, snapshot) / len(busy)
            for instance in busy:
                worker = instance.worker if instance.worker in known else alone
                if worker:
                    yield TaskInstance(self.task(step), instance.number, worker, taken, busiest)

    def _reaching(self, step: str, snapshot: Snapshot) -> float:
        """Rows a second of a step's sources and keyed steps that were not shed before it."""
        rows = sum(self._pushed(producer, snapshot) for producer in self.graph.feeders[step])
        return max(0.0, rows - snapshot.shed.get(step, 0.0))

    def _pushed(self, producer: str, snapshot: Snapshot) -> float:
        if isinstance(self.graph[producer], Source):
            return next((s.taken for s in snapshot.sources if s.name == producer), 0.0)
        return sum(i.records_out for i in snapshot.operators.get(producer, ())) / snapshot.window_s

    def out_rates(self, offer: Offer) -> Iterator[tuple[tuple[str, str], float]]:
        """Rows a second from one keyed step to the next, before any were shed."""
        for step, producers in self.graph.feeders.items():
            for producer in producers:
                if isinstance(self.graph[producer], Keyed):
                    yield (self.task(producer), self.task(step)), self._pushed(producer, offer.snapshot)

    def offered(self, offer: Offer) -> Iterator[tuple[str, float]]:
        """By task that reads sources and nothing else: rows a second that are due for it."""
        for step, producers in self.graph.feeders.items():
            if all(isinstance(self.graph[p], Source) for p in producers):
                yield self.task(step), sum(offer.rates.get(p, 0.0) for p in producers)

    def shed(self, accuracy: Mapping[str, float]) -> None:
        """Give queries another accuracy from the next epoch on."""
        self._running.shed({query: share for query, share in accuracy.items() if share < 1})
        self.accuracy = dict(accuracy)

    def admit(self, rows: Mapping[str, int]) -> None:
        """Take at most so many rows from sources in an epoch."""
        limited = {s.name for s in self.graph.of(Source) if s.spec.admits}
        self._running.admit({name: most for name, most in rows.items() if name in limited})

    def move(self, step: str, instance: int, target: str) -> None:
        """Let another worker own what an instance owns; Refused if that can't be done now."""
        share = self._running.plan.operators.get(step)
        if share is None or not 0 <= instance < share.instances:
            raise Refused(f"step {step!r} has no instance {instance} with slices that could move")
        self._running.move(step, share.slices_of(InstanceId(instance)), target)


def _slots_at_work(snapshot: Snapshot) -> int:
    """Of the workers that have instances: others lend an epoch no cores."""
    at_work = {instance.worker for instance in snapshot.instances}
    return sum(w.slots for w in snapshot.workers if w.id in at_work) or sum(w.slots for w in snapshot.workers)


def _edges(graph: Dataflow) -> tuple[tuple[str, str], ...]:
    return tuple((up, step) for step, producers in graph.feeders.items() for up in sorted(producers))
