"""An app without Spark: epochs on a clock of its own, which take as long as their rows cost on its cores."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from springtide import App, agg, sinks, sources
from springtide.blocks.store import LocalStore
from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.controller import SheddingController
from springtide.control.shed.log import ShedLog
from springtide.control.shed.tenant import Tenant
from springtide.dataflow.accuracy import reached, shedding
from springtide.dataflow.graph import Graph, Sink, Source
from springtide.ids import PlanVersion, WorkerId
from springtide.metrics.report import EpochReport, InstanceReport, OperatorReport, Phases, QueryReport, SourceReport
from springtide.migration.errors import Refused
from springtide.migration.progress import Migration
from springtide.plan.plan import OperatorPlan, Plan, even_plan
from springtide.plan.shedding import NOTHING
from springtide.plan.worker import Worker

CORES = 2
SLICES = 32
CYCLE_S = 5.0
CAPACITY = CORES / 0.002
"""Rows a second at which two steps of a millisecond each keep all cores busy."""


def two_queries(low: float = 0.2, high: float = 0.5, priorities: tuple[int, int] = (0, 5)) -> Graph:
    """One source and two keyed steps, a query each."""
    app = App("app")
    rows = app.source("rows", sources.generator(1000)).key_by("key")
    for name, minimum, priority in (("low", low, priorities[0]), ("high", high, priorities[1])):
        counted = rows.aggregate(f"count-{name}", n=agg.count())
        counted.sink(name, sinks.noop()).with_minimum_accuracy(minimum).with_priority(priority)
    return app.graph()


def one_query(minimum: float, priority: int) -> Graph:
    app = App("app")
    counted = app.source("rows", sources.generator(1000)).key_by("key").aggregate("count", n=agg.count())
    counted.sink("out", sinks.noop()).with_minimum_accuracy(minimum).with_priority(priority)
    return app.graph()


@dataclass
class ModelApp:
    """Stands in for a running app: what was done to it counts from its next epoch on, and is remembered."""

    graph: Graph
    cost_s: float = 0.001
    """Of a row in each keyed step, on one core."""
    shed_s: float = 0.0
    """Of a row that a keyed step is spared, on one core."""
    rate: float = 100.0
    """Rows a second of each source."""
    beside_s: float = 0.0
    """What each keyed step takes in every epoch, on one core."""
    fixed_s: float = 0.3
    """What an epoch takes beside its rows."""
    share: float = 1.0
    """Of the cores, if others have the rest."""
    beside: "list[ModelApp]" = field(default_factory=list)
    """Apps on the same cores: what they leave is there for this one, and at least its even share."""
    workers: tuple[Worker, ...] = ()
    now: float = 0.0
    reports: list[EpochReport] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)
    cores: int = CORES
    instances: int = CORES
    """Of each keyed step."""
    newcomers: tuple[str, ...] = ()
    """Workers with an instance of each keyed step and no rows yet."""
    noise: Callable[[], float] = lambda: 1.0
    """How many times as long as it should an epoch takes."""

    def __post_init__(self) -> None:
        steps = tuple(step for step in self.graph.feeders)
        plan = even_plan(steps, slices=SLICES, instances=CORES, worker=WorkerId("driver"), version=PlanVersion(1))
        if self.workers:
            first = self.workers[0]
            owned = OperatorPlan(plan.operators[steps[0]].instance_of, (first.id,) * CORES)
            plan = Plan(PlanVersion(1), SLICES, self.workers, dict.fromkeys(steps, owned))
        self.plan = plan
        self._lag = {source.name: 0.0 for source in self.graph.of(Source)}
        self._limits: dict[str, int] = {}
        self._shedding = NOTHING

    def shed(self, accuracies: Mapping[str, float]) -> None:
        minima = {sink.name: sink.restrictions.minimum_accuracy for sink in self.graph.of(Sink)}
        for query, accuracy in accuracies.items():
            assert minima[query] <= accuracy <= 1, "never below the minimum"
        self.calls.append(("shed", dict(accuracies)))
        self._shedding = shedding(self.graph, accuracies)

    def admit(self, rows: Mapping[str, int]) -> None:
        self.calls.append(("admit", dict(rows)))
        self._limits = dict(rows)

    def move(self, step: str, slices: Any, target: str) -> Migration:
        """It goes on until somebody ends it."""
        self.calls.append(("move", (step, target)))
        if target == "full":
            raise Refused("no room")
        self.migrations.append(Migration(len(self.calls), "progressive", f"{step} to {target}"))
        return self.migrations[-1]

    def of(self, kind: str) -> list[Any]:
        """What was asked for, by kind."""
        return [what for name, what in self.calls if name == kind]

    @property
    def lag(self) -> float:
        return sum(self._lag.values())

    def run(self, until_s: float) -> None:
        """Epochs, one after the other."""
        while self.now < until_s:
            self._epoch()

    @property
    def _cores(self) -> float:
        left = CORES * self.share - sum(other.busy for other in self.beside)
        return max(left, CORES * self.share / (1 + len(self.beside)))

    @property
    def busy(self) -> float:
        """Cores in use, in the last epoch."""
        if not self.reports:
            return 0.0
        last = self.reports[-1]
        return sum(i.useful_s for o in last.operators for i in o.instances) / last.phases.total_s

    def _epoch(self) -> None:
        taken = {s: round(min(lag, self._limits.get(s, lag))) for s, lag in self._lag.items()}
        kept = {
            step: {p: taken[p] * self._shedding.share(p, step) for p in producers}
            for step, producers in self.graph.feeders.items()
        }
        shed = {step: sum(taken[p] - n for p, n in rows.items()) for step, rows in kept.items()}
        noise = self.noise()
        useful = {
            step: noise * (sum(rows.values()) * self.cost_s + shed[step] * self.shed_s + self.beside_s)
            for step, rows in kept.items()
        }
        took = noise * self.fixed_s + sum(useful.values()) / self._cores
        self.now += took
        for source in self._lag:
            self._lag[source] += self.rate * took - taken[source]
        worker = self.plan.workers[0].id if len(self.plan.workers) > 1 else ""
        operators = tuple(
            OperatorReport(
                step,
                round(sum(rows.values())),
                shed_rows=round(shed[step]),
                instances=tuple(
                    InstanceReport(
                        i,
                        round(sum(rows.values()) / self.instances),
                        process_s=useful[step] / self.instances,
                        worker=worker,
                    )
                    for i in range(self.instances)
                )
                + tuple(InstanceReport(self.instances + i, worker=each) for i, each in enumerate(self.newcomers)),
            )
            for step, rows in kept.items()
        )
        found = tuple(SourceReport(s, taken[s], round(self._lag[s]), 0.0) for s in self._lag)
        offered = sum(taken.values())
        queries = tuple(
            QueryReport(query, offered, round(share * offered), offered - round(share * offered), 0, share)
            for query, share in reached(self.graph, self._shedding).items()
        )
        self.reports.append(
            EpochReport(
                "app",
                len(self.reports),
                self.now,
                self.plan.version,
                False,
                sum(taken.values()),
                0,
                round(self.lag),
                0.0,
                0,
                Phases(compute_s=took),
                operators,
                sources=found,
                queries=queries,
            )
        )


def tenant(model: ModelApp, name: str = "app") -> Tenant:
    return Tenant(name, model.graph, model)  # type: ignore[arg-type]


class Play:
    """Apps and their economy, cycle by cycle; nothing runs by itself."""

    def __init__(self, place: Path, **models: ModelApp) -> None:
        self.models = models
        self.economy = SheddingController(SheddingConfig(cycle_s=CYCLE_S), clock=lambda: self.now)
        self.tenants = {name: tenant(model, name) for name, model in models.items()}
        self.stores = {name: LocalStore(place / name) for name in models}
        self.now = 0.0
        for name, each in self.tenants.items():
            self.economy._tenants[name] = (each, ShedLog(self.stores[name]))

    def cycles(self, count: int) -> Iterator[dict[str, dict[str, float]]]:
        """By app and query: the accuracy wanted, after each cycle."""
        for _ in range(count):
            self.now += CYCLE_S
            for model in self.models.values():
                model.run(self.now)
            self.economy.cycle()
            yield {name: dict(each.accuracy) for name, each in self.tenants.items()}


def calm(place: Path) -> tuple[Play, ModelApp]:
    """An app of two queries that keeps up, after four cycles."""
    model = ModelApp(two_queries(), rate=0.3 * CAPACITY)
    play = Play(place, app=model)
    list(play.cycles(4))
    return play, model
