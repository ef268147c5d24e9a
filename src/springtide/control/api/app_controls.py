"""What can be asked of a running app, answered by its pool."""

import threading
from typing import Any

from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import Store
from springtide.control.adapt.ledger import Ledger
from springtide.control.adapt.loop import Loop
from springtide.control.adapt.settings import Adapt
from springtide.control.adapt.target import AdaptedRunning
from springtide.control.api.prometheus import exposition
from springtide.control.api.protocol import USUAL, Options, Refused
from springtide.dataflow.graph import Graph, Keyed
from springtide.engine.lifecycle.running import Running
from springtide.ids import WorkerId
from springtide.metrics.catalogue import Now
from springtide.metrics.epoch_figures import figures
from springtide.plan.plan import OperatorPlan, Plan

METRICS_S = 15.0
"""The window of those exported metrics that are measured over one."""


class RunningControls:
    """The controls of an app in this process."""

    def __init__(self, app: str, running: Running, graph: Graph, store: Store) -> None:
        self.app = app
        self._running, self._graph, self._store = running, graph, store
        self._adapted = AdaptedRunning(graph, running)
        self._turn = threading.Lock()
        """Of whoever starts or ends the loop."""
        self._loop: Loop | None = None
        self._told: Adapt | None = None
        self._ended = False

    def status(self) -> dict[str, Any]:
        last = self._running.reports[-1] if self._running.reports else None
        pool = self._running.pool
        found: dict[str, Any] = {
            "app": self.app,
            "epoch": None,
            "plan": pool.plan.version,
            "backup_bytes": pool.state.backup_bytes(),
            "adapts": None if self._told is None else self._told.policy,
        }
        if last is not None:
            found |= {"epoch": last.epoch, **figures(last)}
        return found

    def workers(self) -> list[dict[str, Any]]:
        pool = self._running.pool
        memory = self._memory()
        return [
            {
                **vars(worker),
                "state": pool.migrator.state_of(worker.id),
                "slices": sum(len(o.owned(worker.id)) for o in pool.plan.operators.values()),
                "replicas": sum(len(o.standby(worker.id)) for o in pool.plan.operators.values()),
                "resident_bytes": memory.get(worker.id, 0),
            }
            for worker in {w.id: w for w in (*pool.plan.workers, *pool.cluster.workers())}.values()
        ]

    def plan(self) -> dict[str, Any]:
        plan = self._running.pool.plan
        return {
            "version": plan.version,
            "slices": plan.slices,
            "workers": [vars(worker) for worker in plan.workers],
            "operators": {name: _shares(plan, operator) for name, operator in plan.operators.items()},
        }

    def scale(self, workers: int, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        return self._running.scale(workers, strategy, options).to_json()

    def move(self, operator: str, slices: str, to: str, strategy: str, options: Options = USUAL) -> dict[str, Any]:
        wanted = SliceSet.parse(slices)
        return self._running.pool.migrator.move(operator, wanted, WorkerId(to), strategy, options).to_json()

    def migration(self) -> dict[str, Any] | None:
        migration = self._running.pool.migrator.current
        return None if migration is None else migration.to_json()

    def cancel(self) -> dict[str, Any]:
        return self._running.pool.migrator.cancel().to_json()

    def adapt(self, told: dict[str, Any]) -> dict[str, Any]:
        return self.start_adapting(Adapt.from_json(told)).to_json()

    def start_adapting(self, asked: Adapt) -> Adapt:
        """In place of what went on before; within what there is room for."""
        wanted = asked.within(self._running.pool.cluster.capacity())
        stable = wanted.stable(node.name for node in self._graph.of(Keyed))
        with self._turn:
            if self._ended:
                raise Refused(f"{self.app!r} has ended")
            self._end_loop()
            ledger = Ledger(self._store, wanted.policy, wanted.strategy)
            self._loop = Loop(self._adapted, stable.consider, ledger, wanted.pace(), wanted.strategy)
            self._told = wanted
            self._adapted.force = wanted.force
            self._loop.start()
        return wanted

    def rest(self) -> dict[str, Any]:
        with self._turn:
            if self._told is None:
                raise Refused(f"{self.app!r} does not adapt by itself: there is nothing to stop")
            told = self._told
            self._end_loop()
        return told.to_json()

    def stop(self) -> None:
        """The app ends, and so does the loop, for good; a change under way goes on."""
        with self._turn:
            self._ended = True
            self._end_loop()

    def _end_loop(self) -> None:
        if self._loop is not None:
            self._loop.stop()
        self._loop = self._told = None

    def metrics(self) -> bytes:
        running = self._running
        last = running.reports[-1] if running.reports else None
        now = Now(len(running.pool.plan.workers), last, self._adapted.snapshot(METRICS_S))
        return exposition(self.app, running.totals, now)

    def _memory(self) -> dict[str, int]:
        """By worker: the largest of its instances in the last epoch."""
        found: dict[str, int] = {}
        for operator in self._running.reports[-1].operators if self._running.reports else ():
            for instance in operator.instances:
                found[instance.worker] = max(found.get(instance.worker, 0), instance.resident_bytes)
        return found


def _shares(plan: Plan, operator: OperatorPlan) -> dict[str, dict[WorkerId, str]]:
    owners = {w.id: str(SliceSet.of(operator.owned(w.id))) for w in plan.workers}
    replicas = {w.id: str(SliceSet.of(operator.standby(w.id))) for w in plan.workers}
    return {"owners": owners, "replicas": replicas}
