"""The economy of a cluster: once in a cycle, who gives way and by how much. Admit, shed; scaling is the loop's."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from springtide.control.shed.approach import Approach, stage_of
from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.log import ShedDecision, ShedLog
from springtide.control.shed.offer import Offer
from springtide.control.shed.tenant import Tenant
from springtide.logs import room_logger
from springtide.migration.errors import Refused
from springtide.policies.shedding.controller import decide
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.model import InstanceKey, Machine, Model
from springtide.policies.shedding.verdict import QodDecision
from springtide.policies.shedding.warmup import WarmUp, still_warming
from springtide.waits import let_go

log = room_logger(__name__)

FEWEST = 100
"""Rows that a source may give in an epoch, however dear they are."""
JUMP = 1.15
"""Times the rows that the last decision was made for; if more come, the next decision is made at once."""


@dataclass
class Memory:
    """What one cycle leaves for the next."""

    at: float = float("-inf")
    row_cpu: dict[str, float] = field(default_factory=dict)
    """By task: what all its instances take at full accuracy, for each row that comes to its app."""
    warming: tuple[WarmUp, ...] = ()
    graph: TaskGraph | None = None
    comes: dict[str, float] = field(default_factory=dict)
    """By app: the rows a second that came."""
    offers: dict[str, Offer] = field(default_factory=dict)
    """By app: what it last brought."""


class SheddingController:
    """One for all apps that share a cluster; they come and go."""

    def __init__(self, config: SheddingConfig, clock: Callable[[], float] = time.time) -> None:
        self.config, self.clock = config, clock
        self._tenants: dict[str, tuple[Tenant, ShedLog]] = {}
        self._memory = Memory()
        self._approach = Approach()
        self._turn = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        """Of the present thread: one that is told to end has had an event of its own."""

    def join(self, tenant: Tenant, shed_log: ShedLog) -> None:
        """An app is there; the cycles begin with the first that may shed."""
        with self._turn:
            self._tenants[tenant.app] = (tenant, shed_log)
            if self._thread is None and tenant.graph.may_shed:
                self._stopped = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopped,), name="springtide-shedding", daemon=True
                )
                self._thread.start()

    def leave(self, app: str) -> None:
        """An app has ended; with the last that may shed, so do the cycles."""
        with self._turn:
            ended = self._tenants.pop(app, None)
            self._memory.comes.pop(app, None)
            self._approach.forget(app)
            self._memory.offers.pop(app, None)
            thread = None
            if not any(tenant.graph.may_shed for tenant, _ in self._tenants.values()):
                thread, self._thread = self._thread, None
                self._stopped.set()
        if ended is not None:
            _, shed_log = ended
            _write(shed_log)
        if thread is not None and thread is not threading.current_thread():
            let_go(thread)

    def _run(self, stopped: threading.Event) -> None:
        self._memory.at = self.clock()
        while not stopped.wait(min(self.config.look_s, self.config.cycle_s)):
            try:
                self.look()
            except Exception as error:
                # Whatever goes wrong here, the apps go on as they are, and people can read why.
                log.exception("the controller could not decide")
                self._note(f"the controller could not decide: {type(error).__name__}: {error}")

    def look(self) -> QodDecision | None:
        """A cycle, if it is time for one or a load has jumped; None if not."""
        due = self.clock() - self._memory.at >= self.config.cycle_s
        return self.cycle() if due or self._jumped() else None

    def _jumped(self) -> bool:
        """Whether much more comes than the last decision was made for."""
        with self._turn:
            for tenant, _ in self._tenants.values():
                before, seen = self._memory.comes.get(tenant.app), tenant.look(self.config.cycle_s)
                if before and seen is not None and seen.arriving > JUMP * before:
                    return True
        return False

    def cycle(self) -> QodDecision | None:
        """Look, decide, enact and record; None if there was too little to see."""
        decision = self._decide()
        self._record()
        return decision

    def _record(self) -> None:
        """Write down what was decided, while apps may come and go: one's store may keep its writer waiting."""
        with self._turn:
            logs = [shed_log for _, shed_log in self._tenants.values()]
        for shed_log in logs:
            _write(shed_log)

    def _decide(self) -> QodDecision | None:
        with self._turn:
            memory = self._memory
            memory.at = self.clock()
            tenants = [tenant for tenant, _ in self._tenants.values()]
            seen = {tenant: tenant.observe(self.config) for tenant in tenants}
            fresh = {tenant: offer for tenant, offer in seen.items() if offer is not None}
            if not fresh:
                return None
            memory.offers |= {tenant.app: offer for tenant, offer in fresh.items()}
            offers = {tenant: memory.offers[tenant.app] for tenant in tenants if tenant.app in memory.offers}
            moving = {tenant for tenant in offers if tenant not in fresh or tenant.moving}
            unseen = {task.name for tenant in moving for task in tenant.tasks()}
            model = self._model(offers, unseen)
            memory.warming = still_warming(memory.warming, model, self.clock(), unseen=unseen)
            decision = decide(model, {each.key for each in memory.warming})
            memory.row_cpu |= _row_cpu(offers, model, decision)
            stage = stage_of(model, decision, warming=bool(memory.warming))
            wanted = self._approach.next(offers, decision, stage, self.config.rise)
            for tenant, offer in fresh.items():
                memory.comes[tenant.app] = offer.comes
                self._enact(tenant, offer, wanted[tenant], decision)
            self._move(tenants, decision)
            return decision

    def _model(self, offers: Mapping[Tenant, Offer], unseen: Set[str]) -> Model:
        """All that runs. Of an app that is just migrating, whose tasks are `unseen`, little can be told.

        It counts as it was if nothing can, as what it needs is not for others. Instances that it was told to move count
        where they are going: who is there makes room before they come.
        """
        moved = {each.key: each.machine for each in self._memory.warming if each.key[0] in unseen}
        machines = {w.id: w.slots * self.config.utilisation for o in offers.values() for w in o.snapshot.workers}
        several = len(offers) > 1
        instances = tuple(
            instance._replace(worker=moved.get((instance.task, instance.number)) or instance.worker)
            for tenant, offer in offers.items()
            for instance in tenant.instances(offer, among_others=several)
        )
        sizes = Counter(instance.task for instance in instances)
        tasks = tuple(task for tenant in offers for task in tenant.tasks() if task.name in sizes)
        queries = tuple(query for tenant in offers for query in tenant.queries())
        self._memory.graph = TaskGraph.since(self._memory.graph, tasks, queries)
        return Model(
            self._memory.graph,
            tuple(Machine(worker, cores) for worker, cores in machines.items()),
            instances,
            dict(rate for tenant, offer in offers.items() for rate in tenant.out_rates(offer)),
            dict(rate for tenant, offer in offers.items() for rate in tenant.offered(offer)),
            _known_cpu(self._memory.row_cpu, offers, sizes),
        )

    def _enact(self, tenant: Tenant, offer: Offer, wanted: Mapping[str, float], decision: QodDecision) -> None:
        rows = _admitted(offer, tenant.shares(wanted))
        if wanted != tenant.accuracy:
            tenant.shed(wanted)
        if rows:
            tenant.admit(rows)
        _, shed_log = self._tenants[tenant.app]
        before = shed_log.last
        shed_log.note(
            ShedDecision(
                self.clock(),
                wanted,
                rows,
                (*_shortage(tenant, offer), *_told(tenant, decision)),
                comes=round(offer.comes, 1),
                allowed=_finite(offer.allowed),
                missing=round(offer.missing, 1),
            )
        )
        _tell(tenant, before, shed_log.last)

    def _move(self, tenants: list[Tenant], decision: QodDecision) -> None:
        for move in decision.moves:
            for tenant in tenants:
                step = tenant.step(move.instance[0])
                if step is not None:
                    self._moved(tenant, step, move.instance, move.target, move.reason)

    def _moved(self, tenant: Tenant, step: str, instance: InstanceKey, target: str, reason: str) -> None:
        _, shed_log = self._tenants[tenant.app]
        try:
            tenant.move(step, instance[1], target)
        except Refused as refused:
            shed_log.note(ShedDecision(self.clock(), tenant.accuracy, {}, (f"{reason}; refused: {refused}",)))
        else:
            self._memory.warming = (*self._memory.warming, WarmUp(instance, self.clock(), machine=target))
            shed_log.note(ShedDecision(self.clock(), tenant.accuracy, {}, (reason,)))

    def _note(self, reason: str) -> None:
        with self._turn:
            for tenant, shed_log in self._tenants.values():
                shed_log.note(ShedDecision(self.clock(), tenant.accuracy, {}, (reason,)))
        self._record()


def _write(shed_log: ShedLog) -> None:
    """Write what was noted; if the store fails, it is tried again with what comes next."""
    try:
        shed_log.write()
    except Exception as error:
        log.warning("what the controller decided could not be written: %s: %s", type(error).__name__, error)


def _row_cpu(offers: Mapping[Tenant, Offer], model: Model, decision: QodDecision) -> dict[str, float]:
    """What is known of tasks whatever their instances and the load, see `Memory`; nothing of apps without rows."""
    return {
        task.name: decision.full_cpu[task.name] * model.size_of(task.name) / offer.total
        for tenant, offer in offers.items()
        for task in tenant.tasks()
        if task.name in decision.full_cpu and offer.total > 0
    }


def _known_cpu(
    row_cpu: Mapping[str, float], offers: Mapping[Tenant, Offer], sizes: Mapping[str, int]
) -> dict[str, float]:
    """By task: what an instance takes at full accuracy, with the instances and the load of now."""
    return {
        task.name: row_cpu[task.name] * offer.total / sizes[task.name]
        for tenant, offer in offers.items()
        for task in tenant.tasks()
        if task.name in row_cpu and task.name in sizes
    }


def _admitted(offer: Offer, shares: Mapping[str, float]) -> dict[str, int]:
    """By source: the rows that the longest epoch has room for; nothing if that is not known."""
    rows, due = offer.rows_an_epoch(shares), offer.total
    if rows is None or due <= 0:
        return {}
    return {name: max(FEWEST, round(rows * rate / due)) for name, rate in offer.rates.items() if rate > 0}


def _shortage(tenant: Tenant, offer: Offer) -> tuple[str, ...]:
    """What is said when not even the minimum accuracies fit."""
    if not offer.missing:
        return ()
    return (
        f"{tenant.app}: {offer.comes:,.0f} rows/s come, and the minimum accuracies leave room for "
        f"{offer.allowed:,.0f}: {offer.missing:,.0f} rows/s have to wait; more workers or lower minima would help",
    )


def _tell(tenant: Tenant, before: ShedDecision | None, now: ShedDecision | None) -> None:
    """Put a shortage into the log of the process, when it begins and when it is over."""
    was, is_now = before is not None and before.missing > 0, now is not None and now.missing > 0
    if now is not None and is_now and not was:
        log.warning("%s", now.reasons[0])
    elif was and not is_now:
        log.info("%s: the minimum accuracies have room for all rows that come again", tenant.app)


def _finite(rate: float) -> float | None:
    return round(rate, 1) if math.isfinite(rate) else None


def _told(tenant: Tenant, decision: QodDecision) -> tuple[str, ...]:
    """The reasons that speak of an app."""
    return tuple(reason for reason in decision.reasons if f"{tenant.app}/" in reason)


SHARED = SheddingController(SheddingConfig())
"""The apps of one process share one Spark, and so one economy."""
