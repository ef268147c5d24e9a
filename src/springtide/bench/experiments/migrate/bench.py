"""Dataflows that are moved to other workers while they run: the strategies that stop them, and the live ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from springtide.bench.experiments.migrate.journey import (
    IN,
    OUT,
    Journey,
    Leg,
    Passed,
    Voyage,
    dataflow_of,
    legs,
    travel,
    workers_of,
)
from springtide.bench.experiments.migrate.picture import draw
from springtide.bench.harness.arena import Arena, arena
from springtide.bench.harness.findings import Figure, Findings, rounded
from springtide.present.numbers import decimal
from springtide.workloads.dataflows import DATAFLOWS

STRATEGIES = ("restart", "drain", "capture", "handover", "progressive")
LONG = "linear-50"
"""For how long it takes to drain a long row of tasks."""
MEASURES = ("restore_s", "drain_s", "rebalance_s", "catchup_s", "recovery_s", "stabilise_s")


@dataclass(frozen=True)
class MigrateBench:
    """One dataflow, one direction, some strategies."""

    dag: str = "grid"
    direction: str = IN
    strategies: Sequence[str] = STRATEGIES
    window_s: float = 60.0
    calm_epochs: int = 8

    def run(self) -> Findings:
        with arena("migrate") as place:
            journey = self.journey(place)
        figures: dict[str, Figure] = {"dag": self.dag, "direction": self.direction, **faults([journey])}
        few, many = workers_of(dataflow_of(self.dag))
        figures |= {"few": few, "many": many, "window_s": self.window_s}
        figures["median_epoch_s"] = rounded(journey.median_epoch_s)
        for passed in journey.passed:
            figures |= figures_of(passed)
        return Findings("migrate", HEADERS, list(rows_of(journey)), figures, lambda axes: draw(axes, [journey]))

    def journey(self, place: Arena) -> Journey:
        few, many = workers_of(dataflow_of(self.dag))
        voyage = Voyage(
            place.scratch / self.dag,
            self.dag,
            legs(self.strategies, self.direction),
            few,
            many,
            self.calm_epochs,
            self.window_s,
        )
        return sail(place, voyage)


@dataclass(frozen=True)
class MigrateSuite:
    """All five dataflows in both directions, and a long row of tasks that is drained and captured."""

    dags: Sequence[str] = tuple(DATAFLOWS)
    strategies: Sequence[str] = STRATEGIES
    window_s: float = 10.0
    """Shorter than for one dataflow: so that all of it takes less than 40 minutes."""
    calm_epochs: int = 3
    long: bool = True

    def run(self) -> Findings:
        with arena("migrate-suite") as place:
            journeys = [sail(place, voyage) for voyage in self._voyages(place.scratch)]
        figures: dict[str, Figure] = {**faults(journeys), "window_s": self.window_s}
        for journey in journeys:
            name = journey.dataflow.replace("-", "_")
            figures[f"{name}_median_epoch_s"] = rounded(journey.median_epoch_s)
            for passed in journey.passed:
                prefix = f"{name}_{passed.leg.direction}_"
                figures |= {prefix + measure: value for measure, value in figures_of(passed).items()}
        rows = [row for journey in journeys for row in rows_of(journey)]
        return Findings("migrate-suite", HEADERS, rows, figures, lambda axes: draw(axes, journeys))

    def _voyages(self, scratch: Path) -> Iterator[Voyage]:
        for dag in self.dags:
            few, many = workers_of(dataflow_of(dag))
            route = legs(self.strategies, None)
            yield Voyage(scratch / dag, dag, route, few, many, self.calm_epochs, self.window_s)
        if self.long:
            route = (Leg("drain", OUT), Leg("capture", IN))
            yield Voyage(scratch / LONG, LONG, route, *workers_of(dataflow_of(LONG)), 2, self.window_s, trigger_s=0.0)


def sail(place: Arena, voyage: Voyage) -> Journey:
    """A journey in a process and a Spark of its own."""
    journey = place.call(voyage.dataflow, travel, voyage)
    place.leave(voyage.dataflow)
    return journey


def faults(journeys: Sequence[Journey]) -> dict[str, int]:
    """What is wrong with the results, over all strategies."""
    return {
        "lost": sum(journey.lost for journey in journeys),
        "duplicated": sum(journey.duplicated for journey in journeys),
        "miscounted": sum(journey.miscounted for journey in journeys),
    }


def figures_of(passed: Passed) -> dict[str, Figure]:
    """The seven measures of one migration, by strategy."""
    name, measures = passed.leg.strategy, passed.measures
    found: dict[str, Figure] = {f"replayed_{name}": measures.replayed_rows}
    for measure in MEASURES:
        value = getattr(measures, measure)
        found[f"{measure}_{name}"] = None if value is None else rounded(value)
    return found


HEADERS = [
    "dataflow",
    "strategy",
    "restore s",
    "drain s",
    "rebal. s",
    "catch up s",
    "recov. s",
    "steady s",
    "rows again",
    "epoch s",
]
"""Short, as there are many of them."""


def rows_of(journey: Journey) -> Iterator[list[str]]:
    """A line for each migration."""
    for passed in journey.passed:
        measures = [getattr(passed.measures, measure) for measure in MEASURES]
        yield [
            f"{journey.dataflow} {passed.leg.direction}",
            passed.leg.strategy,
            *map(decimal, measures),
            str(passed.measures.replayed_rows),
            decimal(passed.median_epoch_s),
        ]
