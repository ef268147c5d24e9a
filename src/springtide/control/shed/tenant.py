"""One app as the economy sees it: what its steps cost, what is offered to it, and what can be changed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.offer import Offer, keeps_up, longest_s, safely, sustained
from springtide.dataflow.accuracy import served, working_for
from springtide.dataflow.graph import Graph as Dataflow
from springtide.dataflow.graph import Keyed, Sink, Source
from springtide.engine.lifecycle.running import Running
from springtide.ids import InstanceId, PlanVersion, WorkerId
from springtide.metrics.load.epoch_cost import StepSample, epoch_cost, lengths_s
from springtide.metrics.report import EpochReport
from springtide.metrics.snapshot import MeasuredWorker, Snapshot
from springtide.metrics.snapshot_builder import Shape, observe
from springtide.migration.errors import Refused
from springtide.migration.progress import Migration
from springtide.policies.shedding.graph import Query, Task
from springtide.policies.shedding.model import TaskInstance

LOOK_BACK = 32
"""Epochs that tell what one costs."""
MOST_IDLE = 0.9
"""Of an epoch, however long it takes beside its rows."""
COLD = 3
"""The first epochs of a driver, many times as long as others: for a long time all would seem to take that long."""


class Tenant:
    """One of the apps that share a cluster. Names of tasks and queries begin with the app's."""

    def __init__(self, app: str, graph: Dataflow, running: Running) -> None:
        self.app, self.graph, self._running = app, graph, running
        self.accuracy = {sink.name: 1.0 for sink in graph.of(Sink)}
        """By query: what it is to have from now on."""
        self.minima = {sink.name: sink.restrictions.minimum_accuracy for sink in graph.of(Sink)}
        self._move: Migration | None = None
        """The last one that was asked for here."""
        self._served = {step: tuple(sink.name for sink in served(graph, step)) for step in graph.feeders}
        self._sources = {step: _sources_of(graph, step) for step in graph.feeders}

    @property
    def plan_version(self) -> PlanVersion:
        """Of the plan in force: with another one, instances may be elsewhere."""
        return self._running.plan.version

    @property
    def moving(self) -> bool:
        """Whether what it was told to move is still on its way, or no epoch has shown it in its new place yet."""
        if self._move is None:
            return False
        return self._move.under_way or self._running.reports[-1].plan != self.plan_version

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

    def shares(self, accuracy: Mapping[str, float]) -> dict[str, float]:
        """By step: the share of its sources' rows that it works on, if queries have these accuracies."""
        return {step: max(accuracy[query] for query in queries) for step, queries in self._served.items()}

    def look(self, window_s: float) -> Snapshot | None:
        """What was measured lately; None if there was too little to see, or a migration makes it hard to tell."""
        reports = self._running.reports[COLD:][-LOOK_BACK:]
        workers = tuple(MeasuredWorker(w.id, w.slots, host=w.host) for w in self._running.plan.workers)
        return observe(reports, Shape(_edges(self.graph), workers), window_s)

    def observe(self, config: SheddingConfig) -> Offer | None:
        """The last cycle, and what is to be dealt with in the next ones."""
        snapshot = self.look(config.cycle_s)
        if snapshot is None:
            return None
        reports = [r for r in self._running.reports[COLD:][-LOOK_BACK:] if not r.replayed]
        samples = {step: [self._sample(step, report) for report in reports] for step in self.graph.feeders}
        present = sum(report.plan == reports[-1].plan for report in reports)
        cost = epoch_cost(lengths_s(reports), samples, _slots_at_work(snapshot), self._running.cores, present)
        usual_s = cost.pace.length_s(config.epoch_s, config.longest_s)
        # What came in during the last epoch is no backlog.
        fresh_s = min(usual_s + snapshot.epoch_s, config.cycle_s)
        rates = {
            s.name: s.rate + max(0.0, s.lag_rows - s.rate * fresh_s) / (config.catch_up_cycles * config.cycle_s)
            for s in snapshot.sources
        }
        kept = {
            step: sum(sample.kept for sample in some[-snapshot.epochs :]) / snapshot.window_s
            for step, some in samples.items()
        }
        due = {step: sum(rates.get(source, 0.0) for source in self._sources[step]) for step in self.graph.feeders}
        rows = sum(min(source.rate, source.taken) for source in snapshot.sources) * config.cycle_s
        least = {query: safely(minimum, rows) for query, minimum in self.minima.items()}
        shares = self.shares(least)
        most_s = longest_s(snapshot, cost, shares, config)
        needed_s = cost.epoch_for(sum(rates.values()), shares, config.utilisation) or most_s
        epoch_s = min(max(usual_s, needed_s), most_s)
        idle = config.utilisation * _slots_at_work(snapshot) * min(cost.pace.fixed_s / epoch_s, MOST_IDLE)
        allowed = sustained(cost, most_s, shares)
        fine = keeps_up(snapshot, usual_s, fresh_s)
        return Offer(snapshot, cost, rates, least, kept, due, epoch_s, idle, most_s, allowed, fine)

    def _sample(self, step: str, report: EpochReport) -> StepSample:
        """A step in an epoch, in rows of its sources."""
        taken = {source.name: source.rows_in or 0 for source in report.sources}
        rows = sum(taken.get(source, 0) for source in self._sources[step]) if taken else report.rows_in
        told = {query.query: query.accuracy for query in report.queries}
        share = max((told.get(query, 1.0) for query in self._served[step]), default=1.0)
        found = [operator for operator in report.operators if operator.step == step]
        mapped = sum(operator.map_busy_s for operator in found)
        busy: dict[str, float] = defaultdict(float)
        for instance in (i for operator in found for i in operator.instances):
            busy[instance.worker] += instance.useful_s
        together, longest = sum(busy.values()), max(busy.values(), default=0.0)
        return StepSample(share * rows, (1 - share) * rows, mapped + together, mapped + longest)

    def instances(self, offer: Offer, *, among_others: bool = False) -> Iterator[TaskInstance]:
        """Instances with what they took in, the cores that they need for it, and those that they need anyway.

        What an epoch takes beside its rows idles all slots, and so does a slot that has nothing to do while others
        have, unless there are other apps to use them: that apps wait for one another is in the sum of what all need.
        """
        snapshot, pace = offer.snapshot, offer.cost.pace
        slots = _slots_at_work(snapshot)
        alone = slots / pace.cores
        among = 1 / (1 - min(pace.fixed_s / offer.epoch_s, MOST_IDLE))
        dear, beside = (among, 0.0) if among_others else (alone, offer.idle)
        operators = {step: found for step, found in snapshot.operators.items() if step in self.graph.feeders}
        at_work = {step: [i for i in found if i.records_in] or list(found) for step, found in operators.items()}
        everywhere = sum(map(len, at_work.values()))
        for step, busy in at_work.items():
            cost, share = offer.cost.steps[step], dear / len(busy)
            floor = beside / everywhere + offer.due[step] * cost.shed_s * share
            cpu = floor + offer.kept[step] * (cost.kept_s - cost.shed_s) * share
            taken = self._reaching(step, snapshot) / len(busy)
            for instance in busy:
                worker = self._place(instance.worker, snapshot)
                if worker:
                    yield TaskInstance(self.task(step), instance.number, worker, taken, cpu, floor)

    def _place(self, worker: WorkerId, snapshot: Snapshot) -> WorkerId | None:
        """Where an instance runs; a report need not name the only worker there is."""
        if any(worker == each.id for each in snapshot.workers):
            return worker
        return snapshot.workers[0].id if len(snapshot.workers) == 1 else None

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
        """Take at most these rows from each source in an epoch."""
        limited = {s.name for s in self.graph.of(Source) if s.spec.admits}
        self._running.admit({name: most for name, most in rows.items() if name in limited})

    def move(self, step: str, instance: int, target: str) -> None:
        """Let another worker own what an instance owns; Refused if that can't be done now."""
        share = self._running.plan.operators.get(step)
        if share is None or not 0 <= instance < share.instances:
            raise Refused(f"step {step!r} has no instance {instance} with slices that could move")
        self._move = self._running.move(step, share.slices_of(InstanceId(instance)), target)


def _slots_at_work(snapshot: Snapshot) -> int:
    """Of the workers whose instances had rows: others lent an epoch no cores. A new one gets state before rows."""
    at_work = {instance.worker for instance in snapshot.instances if instance.records_in}
    return sum(w.slots for w in snapshot.workers if w.id in at_work) or sum(w.slots for w in snapshot.workers)


def _edges(graph: Dataflow) -> tuple[tuple[str, str], ...]:
    return tuple((up, step) for step, producers in graph.feeders.items() for up in sorted(producers))


def _sources_of(graph: Dataflow, step: str) -> frozenset[str]:
    """The sources whose rows reach a step, in whatever form."""
    found: set[str] = set()
    for producer in graph.feeders[step]:
        found |= {producer} if isinstance(graph[producer], Source) else _sources_of(graph, producer)
    return frozenset(found)
