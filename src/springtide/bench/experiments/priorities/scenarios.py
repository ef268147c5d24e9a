"""Two apps on two workers, with more load than they can hold: who gives way, cycle by cycle.

Taxi Drives has two sources in a union and two dear queries, K nearest neighbours has one. Their work waits a fixed time
for every row, as a call to another service does: so each worker has room of its own, though all share this machine.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from springtide import App, rates, sinks, sources
from springtide.bench.experiments.autoscale import SlowCount
from springtide.bench.harness.contestants import ALL_REPORTS
from springtide.bench.harness.trial import cluster_session, wait_for
from springtide.control.shed.config import SheddingConfig
from springtide.control.shed.controller import SHARED
from springtide.control.shed.log import ShedDecision, read_shed_log
from springtide.engine.lifecycle.running import Running
from springtide.ids import WorkerId
from springtide.metrics.report import EpochReport
from springtide.migration.errors import Refused

WORKERS = 2
TRICKLE = 100.0
"""Rows a second before the load begins."""
Steps = tuple[tuple[float, float], ...]
"""From when, in seconds since the load began, how many rows a second."""


@dataclass(frozen=True)
class Scenario:
    """What is offered when, and how much each query matters."""

    name: str
    seconds: float
    drives: Steps
    readings: Steps = ()
    """Of K nearest neighbours, which joins with them; nothing if it does not take part."""
    priorities: Mapping[str, int] | None = None
    row_s: float = 0.001
    lead_s: float = 110.0
    """For the apps to start, and to come together on their workers, before the load begins."""


@dataclass(frozen=True)
class Seen:
    """One app in a scenario."""

    app: str
    reports: tuple[EpochReport, ...]
    decisions: tuple[ShedDecision, ...]
    owners: tuple[tuple[float, Mapping[str, tuple[str, ...]]], ...]
    """When, and by keyed step: the workers that own some of it from then on."""


@dataclass(frozen=True)
class Played:
    """What a scenario showed."""

    scenario: Scenario
    began_at: float
    apps: tuple[Seen, ...]


def taxi_drives(scenario: Scenario, start_s: float) -> App:
    """Two sources, a union, two queries: `speeds` may lose 60 % of its rows, `zones` 40 %."""
    app = App("taxi", slices=32)
    load = partial(sources.generator, _profile(scenario, scenario.drives, share=0.5), keys=200, start_s=start_s)
    drives = app.source("hailed", load(seed=1)).union("drives", app.source("booked", load(seed=2)))
    for query, minimum in (("speeds", 0.4), ("zones", 0.6)):
        step = drives.key_by("key").reduce_batches(
            f"{query}-of", SlowCount(scenario.row_s), state={"n": int}, output={"key": int, "n": int}
        )
        step.sink(query, sinks.noop()).with_minimum_accuracy(minimum).with_priority(_priority(scenario, query))
    return app


def nearest_neighbours(scenario: Scenario, start_s: float) -> App:
    """One query, which may lose 70 % of its rows."""
    app = App("knn", slices=32)
    load = sources.generator(_profile(scenario, scenario.readings), keys=200, seed=3, start_s=start_s)
    readings = app.source("readings", load)
    step = readings.key_by("key").reduce_batches(
        "neighbours", SlowCount(scenario.row_s), state={"n": int}, output={"key": int, "n": int}
    )
    step.sink("sensors", sinks.noop()).with_minimum_accuracy(0.3).with_priority(_priority(scenario, "sensors"))
    return app


def play(scenario: Scenario, directory: Path, config: SheddingConfig) -> Played:
    """Run a scenario in this process. Taxi Drives starts on the first worker alone, the other one on the second."""
    spark = cluster_session(WORKERS)
    SHARED.config = config
    start = time.time()
    watches = [_Watch(taxi_drives(scenario, start), directory)]
    if scenario.readings:
        watches.append(_Watch(nearest_neighbours(scenario, start), directory))
    began = start + scenario.lead_s
    try:
        for watch in watches:
            watch.start(spark)
        for number, watch in enumerate(watches):
            watch.gather(number)
        if time.time() > began:
            late = f"{time.time() - began:.0f} s after the load began"
            raise RuntimeError(f"the apps were in their places {late}: the machine is busy with something else")
        while time.time() < began + scenario.seconds:
            for watch in watches:
                watch.look()
            time.sleep(0.2)
    finally:
        found = tuple(watch.stop() for watch in watches)
    return Played(scenario, began, found)


class _Watch:
    """One app of a scenario, and who owns what in it."""

    def __init__(self, app: App, directory: Path) -> None:
        self.app, self.directory = app, directory / app.name
        self.owners: list[tuple[float, Mapping[str, tuple[str, ...]]]] = []
        self.running: Running | None = None

    def start(self, spark: object) -> None:
        place = {"checkpoint": str(self.directory / "checkpoint"), "local": str(self.directory / "local")}
        self.running = self.app.start(spark, workers=WORKERS, replicas=0, keep_reports=ALL_REPORTS, **place)  # type: ignore[arg-type]

    def gather(self, number: int) -> None:
        """Let one worker own all that there is."""
        running = self._at_work()
        wait_for(running, lambda: len(running.reports) > 1)
        target = running.plan.workers[number].id
        wait_for(running, lambda: self._gathered(target))

    def _gathered(self, target: WorkerId) -> bool:
        """Whether a worker owns all; if not, and nothing is on its way, one more step goes there."""
        running = self._at_work()
        for step, share in running.plan.operators.items():
            others = [s for s, owner in enumerate(share.owners) if owner != target]
            if others:
                with suppress(Refused):  # The controller may be moving something itself.
                    running.move(step, others, target, "handover")
                return False
        return True

    def look(self) -> None:
        running = self._at_work()
        if not running.active:
            running.stop()
        now = {step: tuple(sorted(set(share.owners))) for step, share in running.plan.operators.items()}
        if not self.owners or self.owners[-1][1] != now:
            self.owners.append((time.time(), now))

    def stop(self) -> Seen:
        if self.running is None:
            return Seen(self.app.name, (), (), ())
        reports = tuple(r for r in self.running.stop() if not r.replayed)
        return Seen(self.app.name, reports, tuple(read_shed_log(self.running.store)), tuple(self.owners))

    def _at_work(self) -> Running:
        assert self.running is not None, "it was started"
        return self.running


def _profile(scenario: Scenario, steps: Steps, share: float = 1.0) -> rates.Rate:
    """The load, after a trickle that keeps epochs coming."""
    return rates.step([(0.0, TRICKLE * share), *((scenario.lead_s + at, rate * share) for at, rate in steps)])


def _priority(scenario: Scenario, query: str) -> int:
    return (scenario.priorities or {}).get(query, 0)
