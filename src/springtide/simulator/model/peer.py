"""A peer, modelled: each operator has slots of its own and queues in front of them; a change stops everything."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from springtide.ids import WorkerId
from springtide.metrics.snapshot import Edge, Instance, MeasuredWorker, Snapshot, Source
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker
from springtide.policies.decision import Decision, Scale
from springtide.simulator.model.placement import Floats, Ints, slice_weights
from springtide.simulator.model.window import Window
from springtide.simulator.report.books import Books
from springtide.simulator.report.story import MIGRATION, Sample, Story
from springtide.simulator.scenario.scenario import OperatorModel, Scenario


class Stage:
    """One operator: its instances, and the rows that wait for each."""

    def __init__(self, model: OperatorModel, weights: Floats) -> None:
        self.model, self._weights = model, weights
        self.instances = 0
        self.queue: Ints = np.zeros(0, np.int64)
        self.share: Floats = np.zeros(0)
        """By instance: its share of the rows."""

    def spread(self, instances: int, draw: float) -> None:
        """From now on there are this many instances; the rows that wait are spread over them."""
        self.instances = instances
        workers = [Worker(WorkerId(f"{self.model.name}-{i}")) for i in range(instances)]
        ring = Ring.even(len(self._weights), workers)
        self.share = np.add.reduceat(self._weights, [token for _, token in ring.tokens])
        rows, self.queue = int(self.queue.sum()), np.zeros(instances, np.int64)
        self.arrive(rows, draw)

    def arrive(self, rows: int, draw: float) -> None:
        """Rows reach the instances by their shares; whole rows, and which of them get the odd ones is drawn."""
        cuts = np.floor(rows * np.cumsum(self.share) + draw).astype(np.int64)
        cuts[-1] = rows
        self.queue += np.diff(cuts, prepend=0)

    @property
    def service_s(self) -> float:
        return float(self.model.service_s * self.instances ** (1 - self.model.exponent))

    def process(self, seconds: float, most: int) -> Ints:
        """By instance: the rows done in that time, not more than `most` in all."""
        done = np.minimum(self.queue, int(seconds / self.service_s))
        if done.sum() > most:
            done = (done * (most / done.sum())).astype(np.int64)
        self.queue = self.queue - done
        return done


class Peer:
    """Runs in a SimPy environment."""

    def __init__(
        self, env: simpy.Environment, scenario: Scenario, books: Books, story: Story, rng: np.random.Generator
    ) -> None:
        self.env, self.scenario, self.books, self.story, self.rng = env, scenario, books, story, rng
        self.stages: dict[str, Stage] = {}
        for operator in scenario.operators:
            stage = self.stages[operator.name] = Stage(operator, slice_weights(operator, scenario.state.slices, rng))
            stage.spread(operator.parallelism, self._draw())
        self._seen = Window(0.0)
        self._sampled = Window(0.0)
        self._ticks, self._lag_rows = 0, 0
        self._change = ""
        self.pause_s = 0.0
        env.process(self._work())

    @property
    def busy(self) -> str:
        return self._change

    @property
    def workers(self) -> int:
        return sum(stage.instances for stage in self.stages.values())

    @property
    def cores(self) -> int:
        return self.workers

    def enact(self, decision: Decision) -> str:
        """Other numbers of instances, after a stop; nothing if they are the same."""
        assert isinstance(decision, Scale), "a peer moves no single slices"
        wanted = {
            name: decision.parallelism[name]
            for name, stage in self.stages.items()
            if decision.parallelism.get(name, stage.instances) != stage.instances
        }
        if not wanted:
            return ""
        before = self.workers
        after = before + sum(count - self.stages[name].instances for name, count in wanted.items())
        self.env.process(self._restart(wanted))
        return "up" if after >= before else "down"

    @property
    def epochs_s(self) -> tuple[float, ...]:
        return ()

    @property
    def lag_rows(self) -> float:
        return self._lag_rows / max(1, self._ticks)

    @property
    def measured_s(self) -> float:
        return self.env.now - self._seen.began_s

    def observe(self) -> Snapshot:
        window, self._seen = self._seen, Window(self.env.now)
        now, took_s = self.env.now, self.env.now - window.began_s
        instances, workers = [], []
        for name, stage in self.stages.items():
            rows = _full(window.rows_in.get(name, np.zeros(0)), stage.instances)
            useful = _full(window.useful_s.get(name, np.zeros(0)), stage.instances)
            ratio = window.rows_out.get(name, 0.0) / rows.sum() if rows.sum() else 0.0
            for i in range(stage.instances):
                worker, queue = WorkerId(f"{name}-{i}"), float(stage.queue[i])
                done, busy_s = float(rows[i]), float(useful[i])
                instances.append(Instance(name, i, worker, busy_s, done, done * ratio, queue, busy_s))
                workers.append(MeasuredWorker(worker, 1, min(1.0, busy_s / took_s), queue))
        return Snapshot(
            at=now,
            window_s=took_s,
            epochs=window.epochs,
            sources=tuple(
                Source(name, (a.due(now) - a.due(window.began_s)) / took_s, self.books.lag(name, now), self.lag_s)
                for name, a in self.books.arrivals.items()
            ),
            edges=tuple(Edge(upstream, o.name) for o in self.scenario.operators for upstream in o.inputs),
            instances=tuple(instances),
            workers=tuple(workers),
            pause_s=self.pause_s,
            epoch_s=self.scenario.flow.tick_s,
        )

    @property
    def lag_s(self) -> float:
        """How long rows that are taken now have been due, by the rate of now."""
        rate = sum(a.rate(self.env.now) for a in self.books.arrivals.values())
        return self.books.lag_rows(self.env.now) / rate if rate else 0.0

    def sample(self) -> Sample:
        window, self._sampled = self._sampled, Window(self.env.now)
        return window.sample(
            self.env.now,
            self.books.arrivals.values(),
            self.cores,
            lag_rows=self.books.lag_rows(self.env.now),
            lag_s=round(self.lag_s, 3),
            workers=self.workers,
            parallelism={name: stage.instances for name, stage in self.stages.items()},
        )

    def _work(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self.env.timeout(self.scenario.flow.tick_s)
            if self._change:
                self.books.hold_back(self.env.now)
            else:
                self._tick()
            self._ticks += 1
            self._lag_rows += self.books.lag_rows(self.env.now)

    def _tick(self) -> None:
        """The last operators first, so that those before them find room."""
        for operator in reversed(self.scenario.operators):
            stage, account = self.stages[operator.name], self.books.accounts[operator.name]
            room = min((self._room(consumer) for consumer in self.scenario.consumers(operator.name)), default=None)
            most = account.waiting
            if room is not None and operator.selectivity > 0:
                most = min(most, int(room / operator.selectivity))
            done = stage.process(self.scenario.flow.tick_s, most)
            useful_s = np.asarray(done * stage.service_s, np.float64)
            rows = int(done.sum())
            account.waiting -= rows
            pushed = self.books.do(operator, rows)
            for window in (self._seen, self._sampled):
                window.add(operator.name, done.astype(np.float64), useful_s, pushed)
            self._send(operator.name, pushed)
        for source in self.books.arrivals:
            room = min(self._room(consumer) for consumer in self.scenario.consumers(source))
            rows = min(room, self.books.lag(source, self.env.now))
            self.books.taken[source] += rows
            self._send(source, rows)
            for window in (self._seen, self._sampled):
                window.took(source, rows)
                window.epochs += 1
        self.books.hold_back(self.env.now)

    def _send(self, upstream: str, rows: int) -> None:
        for consumer in self.scenario.consumers(upstream):
            self.books.accounts[consumer.name].waiting += rows
            self.stages[consumer.name].arrive(rows, self._draw())

    def _room(self, operator: OperatorModel) -> int:
        """Rows that may still wait for it."""
        stage = self.stages[operator.name]
        return max(0, self.scenario.flow.buffer_rows * stage.instances - int(stage.queue.sum()))

    def _restart(self, wanted: dict[str, int]) -> Generator[simpy.Event, Any, None]:
        stop_s = self.scenario.migration.stop_restart_s or 0.0
        self._change = ", ".join(f"{name} to {count}" for name, count in wanted.items())
        began_s = self.env.now
        yield self.env.timeout(stop_s)
        for name, count in wanted.items():
            self.stages[name].spread(count, self._draw())
        # What was measured with other instances says nothing about these.
        self._seen = Window(self.env.now)
        self.pause_s = max(self.pause_s, stop_s)
        self.story.tell(self.env.now, MIGRATION, self._change, outcome="done", began_s=began_s, seconds=stop_s)
        self._change = ""

    def _draw(self) -> float:
        return float(self.rng.random())


def _full(values: Floats, size: int) -> Floats:
    return np.pad(values, (0, size - len(values)))
