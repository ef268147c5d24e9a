"""The economy of a cluster: once in a cycle, who gives way and by how much. Admit, shed; scaling is the loop's."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from springtide.control.shedlog import ShedLog
from springtide.control.tenant import Offer, Tenant
from springtide.logs import room_logger
from springtide.migration.errors import Refused
from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.model import InstanceKey, Machine, Model
from springtide.policies.shedding.probabilities import desired_of_tasks
from springtide.policies.shedding.verdict import QodDecision
from springtide.policies.shedding.warmup import WarmUp, still_warming
from springtide.waits import let_go

log = room_logger(__name__)

FEWEST = 100
"""Rows that a source may give in an epoch, however dear they are."""
CHANCE = 3.0
"""Standard deviations that a query is kept away from its minimum, as it is by chance which rows are shed."""
MARGIN = 0.05
"""The most for that: with few rows chance has too much of a say, and overload has to be met all the same."""
SAME = 0.01
"""Accuracies that differ by less are not worth a change."""


@dataclass(frozen=True)
class EconomyConfig:
    """How the controller works."""

    cycle_s: float = 5.0
    """From one look to the next."""
    epoch_s: float = 1.5
    """How long an epoch is to take: what does not fit is shed. Longer if much of it is not for rows."""
    longest_s: float = 4.0
    """How long it may take when a load jumps or not even the minimum accuracies fit, by the read limits."""
    utilisation: float = 0.85
    """The share of the cores that is planned for."""
    rise: float = 0.2
    """The most that an accuracy rises in one cycle; it falls at once."""

    def __post_init__(self) -> None:
        for name in ("cycle_s", "epoch_s", "longest_s", "utilisation", "rise"):
            if not getattr(self, name) > 0:
                raise Refused(f"{name}: expected more than 0, got {getattr(self, name)}")


@dataclass
class Memory:
    """What one cycle leaves for the next."""

    full_cpu: Mapping[str, float] = field(default_factory=dict)
    warming: tuple[WarmUp, ...] = ()
    graph: Graph | None = None


class Economy:
    """One for all apps that share a cluster; they come and go."""

    def __init__(self, config: EconomyConfig, clock: Callable[[], float] = time.time) -> None:
        self.config, self.clock = config, clock
        self._tenants: dict[str, tuple[Tenant, ShedLog]] = {}
        self._memory = Memory()
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def join(self, tenant: Tenant, log: ShedLog) -> None:
        """An app is there; the cycles begin with the first that may shed."""
        with self._turn:
            self._tenants[tenant.app] = (tenant, log)
            if self._thread is None and tenant.graph.may_shed:
                self._stopped.clear()
                self._thread = threading.Thread(target=self._run, name="springtide-economy", daemon=True)
                self._thread.start()

    def leave(self, app: str) -> None:
        """An app has ended; with the last that may shed, so do the cycles."""
        with self._turn:
            self._tenants.pop(app, None)
            if any(tenant.graph.may_shed for tenant, _ in self._tenants.values()):
                return
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None and thread is not threading.current_thread():
            let_go(thread)

    def _run(self) -> None:
        while not self._stopped.wait(self.config.cycle_s):
            try:
                self.cycle()
            except Exception as error:
                # Whatever goes wrong here, the apps go on as they are, and people can read why.
                log.exception("the controller could not decide")
                self._note(f"the controller could not decide: {type(error).__name__}: {error}")

    def cycle(self) -> QodDecision | None:
        """Look, decide, record, enact; None if there was too little to see."""
        with self._turn:
            tenants = [tenant for tenant, _ in self._tenants.values()]
            config = self.config
            seen = {t: t.observe(config.cycle_s, config.epoch_s, config.longest_s) for t in tenants}
            offers = {tenant: offer for tenant, offer in seen.items() if offer is not None}
            if not offers:
                return None
            model = self._model(offers)
            memory = self._memory
            memory.warming = still_warming(memory.warming, model, self.clock())
            decision = decide(model, {each.key for each in memory.warming})
            memory.full_cpu = decision.full_cpu
            wanted = self._wanted(offers, decision)
            room = _room(model, decision, wanted)
            for tenant, offer in offers.items():
                self._enact(tenant, wanted[tenant], self._admitted(offer, room, decision), decision)
            self._move(tenants, decision)
            return decision

    def _model(self, offers: Mapping[Tenant, Offer]) -> Model:
        machines = {w.id: w.slots * self.config.utilisation for o in offers.values() for w in o.snapshot.workers}
        several = len(offers) > 1
        instances = tuple(
            i for tenant, offer in offers.items() for i in tenant.instances(offer, among_others=several)
        )
        there = {instance.task for instance in instances}
        tasks = tuple(task for tenant in offers for task in tenant.tasks() if task.name in there)
        queries = tuple(query for tenant in offers for query in tenant.queries())
        self._memory.graph = Graph.since(self._memory.graph, tasks, queries)
        return Model(
            self._memory.graph,
            tuple(Machine(worker, cores) for worker, cores in machines.items()),
            instances,
            dict(rate for tenant, offer in offers.items() for rate in tenant.out_rates(offer)),
            dict(rate for tenant, offer in offers.items() for rate in tenant.offered(offer)),
            {task: cpu for task, cpu in self._memory.full_cpu.items() if task in there},
        )

    def _wanted(self, offers: Mapping[Tenant, Offer], decision: QodDecision) -> dict[Tenant, dict[str, float]]:
        """By app and query: what it is to have, and never less than its minimum: what can't be worked on has to wait.

        Accuracies rise a little at a time. Meanwhile no query gets more than one of higher priority that is still
        on its way.
        """
        wanted: dict[Tenant, dict[str, float]] = {tenant: {} for tenant in offers}
        queries = [(query, tenant) for tenant in offers for query in tenant.queries()]
        ceiling: dict[int, float] = {}
        for query, tenant in sorted(queries, key=lambda each: -each[0].priority):
            name = tenant.step(query.name) or query.name
            now, goal = tenant.accuracy[name], decision.accuracy[query.name]
            taken = sum(min(source.rate, source.taken) for source in offers[tenant].snapshot.sources)
            least = _safely(query.minimum_accuracy, taken * self.config.cycle_s)
            most = min((share for priority, share in ceiling.items() if priority > query.priority), default=1.0)
            asked = max(least, min(goal, now + self.config.rise, most))
            asked = now if abs(asked - now) < SAME and least <= now and asked < 1 else asked
            wanted[tenant][name] = asked
            if asked < goal:
                ceiling[query.priority] = min(asked, ceiling.get(query.priority, 1.0))
        return wanted

    def _admitted(self, offer: Offer, room: float | None, decision: QodDecision) -> dict[str, int]:
        """By source: the rows that can be worked on in one epoch; nothing if that is not known."""
        if room is None:
            return {}
        longest_s = max(self.config.longest_s, 4 * offer.pace.fixed_s)
        if decision.below_minimum:
            # As long as rows have to wait anyway: the longer an epoch, the more of it is for rows.
            longest_s = max(longest_s, min(_waiting_s(offer), 2 * self.config.cycle_s))
        most_s = longest_s * room * offer.pace.room(longest_s) / offer.pace.room(offer.epoch_s)
        return {name: max(FEWEST, round(rate * most_s)) for name, rate in offer.rates.items() if rate > 0}

    def _enact(
        self, tenant: Tenant, wanted: Mapping[str, float], rows: Mapping[str, int], decision: QodDecision
    ) -> None:
        if wanted != tenant.accuracy:
            tenant.shed(wanted)
        if rows:
            tenant.admit(rows)
        _, log = self._tenants[tenant.app]
        log.add(self.clock(), wanted, rows, _told(tenant, decision))

    def _move(self, tenants: list[Tenant], decision: QodDecision) -> None:
        for move in decision.moves:
            for tenant in tenants:
                step = tenant.step(move.instance[0])
                if step is not None:
                    self._moved(tenant, step, move.instance, move.target, move.reason)

    def _moved(self, tenant: Tenant, step: str, instance: InstanceKey, target: str, reason: str) -> None:
        _, log = self._tenants[tenant.app]
        try:
            tenant.move(step, instance[1], target)
        except Refused as refused:
            log.add(self.clock(), tenant.accuracy, {}, (f"{reason}; refused: {refused}",))
        else:
            self._memory.warming = (*self._memory.warming, WarmUp(instance, self.clock()))
            log.add(self.clock(), tenant.accuracy, {}, (reason,))

    def _note(self, reason: str) -> None:
        with self._turn:
            for tenant, log in self._tenants.values():
                log.add(self.clock(), tenant.accuracy, {}, (reason,))


def _safely(minimum: float, rows: float) -> float:
    """A share with which hardly any cycle of so many rows falls below the minimum by chance."""
    chance = CHANCE * math.sqrt(minimum * (1 - minimum) / max(rows, 1.0))
    return min(1.0, minimum + min(chance, MARGIN))


def _waiting_s(offer: Offer) -> float:
    """How long it takes the rows that wait now to arrive, at the source where that is longest."""
    return max((s.lag_rows / s.rate for s in offer.snapshot.sources if s.rate > 0), default=0.0)


def _room(model: Model, decision: QodDecision, wanted: Mapping[Tenant, Mapping[str, float]]) -> float | None:
    """How many times the work of all tasks fits into the fullest machine, at the accuracy that is wanted."""
    levels = {tenant.task(query): share for tenant, some in wanted.items() for query, share in some.items()}
    accuracy = desired_of_tasks(model.graph, np.array([levels[query.name] for query in model.graph.queries]))
    load: dict[str, float] = {}
    for instance in model.instances:
        cost = decision.full_cpu.get(instance.task, 0.0) * float(accuracy[model.graph.index[instance.task]])
        load[instance.worker] = load.get(instance.worker, 0.0) + cost
    return min((machine.cores / load[machine.id] for machine in model.machines if load.get(machine.id)), default=None)


def _told(tenant: Tenant, decision: QodDecision) -> tuple[str, ...]:
    """The reasons that speak of an app."""
    return tuple(reason for reason in decision.reasons if f"{tenant.app}/" in reason)


SHARED = Economy(EconomyConfig())
"""The apps of one process share one Spark, and so one economy."""
