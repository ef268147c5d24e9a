"""More drives than the machine can work on: with shedding, and without it, on the same injection.

Both are started and warmed before anything is measured, each in its own process and Spark. The capacity is measured of
both in turn, by full epochs that follow each other while drives come; the load is derived from that of the one without
shedding. Then drives are injected to one while the other is idle, and the other way round. How fast the machine itself
was is watched all the time.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import Concatenate

from springtide.bench.experiments.shed.costs import cost_of_shed, costs_of_kept
from springtide.bench.experiments.shed.figures import (
    WITH,
    WITHOUT,
    accounting_error,
    accuracies,
    p99_latency,
    recovered_cycles,
    worst_lag,
)
from springtide.bench.experiments.shed.overload import Overload, Overloaded
from springtide.bench.experiments.shed.picture import draw
from springtide.bench.experiments.shed.promises import acted, growth
from springtide.bench.experiments.shed.staged import Answer, Asked, Burst, Staged, Staging, on_stage, stage
from springtide.bench.harness.arena import Arena, arena
from springtide.bench.harness.bar_table import Table
from springtide.bench.harness.findings import Figure, Findings, rounded
from springtide.bench.harness.in_a_row import in_a_row
from springtide.bench.harness.machine_speed import MachineWatch, Speed, usual_speed, worst_speed
from springtide.testing.kafka import Broker

MINIMA = {"speeds": 0.4, "zones": 0.6}
FACTOR = 1.6
LOW = 0.5
STEP_S = 1.0


@dataclass(frozen=True)
class Measured:
    """What a run of the benchmark measured."""

    tracks: Mapping[str, Overloaded]
    capacities: Mapping[str, float]
    """Drives a second."""
    speeds: tuple[Speed, ...] = ()
    costs: Mapping[str, float] | None = None


class _StagedApp:
    """An app that is staged in another process, and asked from this one."""

    def __init__(self, place: Arena, process: str, staging: Staging) -> None:
        self.place, self.process, self.staging = place, process, staging
        place.call(process, stage, staging)

    def ask(
        self, what: Callable[Concatenate[Staged, Asked], Answer], *some: Asked.args, **more: Asked.kwargs
    ) -> Answer:
        return self.place.call(self.process, partial(on_stage, self.staging.name, what, *some, **more))

    def burst(self, rows: int) -> Burst:
        return self.ask(Staged.burst, rows)

    def shed(self, accuracies: Mapping[str, float]) -> None:
        self.ask(Staged.shed, accuracies)


@dataclass(frozen=True)
class ShedBench:
    factor: float = FACTOR
    """The peak, in times of the capacity."""
    step: bool = False
    """The rate rises in a second."""
    phases_s: tuple[float, float, float, float] = (50.0, 60.0, 20.0, 15.0)
    settle_s: float = 15.0
    warm_s: float = 45.0
    """The longest that each may take to warm up."""
    bursts: tuple[int, int] = Staging.bursts
    """Drives at once that tell how many an epoch takes, at first and at most."""
    epochs: tuple[int, float] = (Staging.epochs, Staging.epoch_s)
    """With which the capacity is measured: how many, and the seconds that each takes at least."""
    turns: int = 2
    """How often the capacity of each is measured; 0 for once, and only of the one that the load is derived from."""
    rounds: int = 3
    """Of the costs of rows; without any they are not measured."""
    detail: int = Staging.detail
    """Of the city's streets: what a drive costs is in proportion."""
    runs: int = 1
    """Injections to the app that may shed, one after the other; the capacity is measured anew before each."""

    @classmethod
    def quick(cls, factor: float = FACTOR, step: bool = False, runs: int = 1) -> "ShedBench":
        """Shorter phases, one capacity measured once, and no costs of rows: of a few drives they would be noise.

        Fewer drives that cost more: so most of an epoch is work that a cold JVM does not slow down.
        """
        return cls(
            factor,
            step,
            phases_s=(1.0, 10.0, 1.0, 2.0),
            settle_s=2.0,
            warm_s=6.0,
            bursts=(600, 600),
            epochs=(2, 2.0),
            turns=0,
            rounds=0,
            detail=4 * Staging.detail,
            runs=runs,
        )

    @property
    def course(self) -> Overload:
        rise_s, stay_s, fall_s, low_s = self.phases_s
        return Overload((STEP_S if self.step else rise_s, stay_s, fall_s, low_s), self.settle_s, (LOW, self.factor))

    @property
    def measures_costs(self) -> bool:
        """What a row costs does not depend on how many come, or how soon: it is measured with the usual load alone."""
        return self.rounds > 0 and not self.step and self.factor == FACTOR

    @property
    def name(self) -> str:
        """Of its picture: other forms do not overwrite it."""
        return "shed" + ("" if self.factor == FACTOR else f"-{self.factor:g}") + ("-step" if self.step else "")

    def run(self) -> Findings:
        with Broker() as broker, arena("shed") as place, MachineWatch() as watch:
            without, with_ = self._stage(place, broker.servers)
            capacities, rows = _capacities(without, with_, self.turns)
            costs = None
            if self.measures_costs:
                kept = costs_of_kept(without.burst, with_.burst, rows, self.rounds)
                costs = {"cost_of_kept_row": kept.kept_row, "cost_of_shed_row": self._cost_of_shed(with_, rows)}
            found = []
            for number in range(self.runs):
                if number:
                    capacities, _ = _capacities(without, with_, 1)
                last = number + 1 == self.runs
                tracks = self._inject(with_, without if last else None, capacities[WITHOUT])
                found.append(Measured(tracks, capacities, tuple(watch.speeds), costs))
            with_.ask(Staged.end)
        return in_a_row([self._findings(measured) for measured in found], worst_by="lag_cycles_with")

    def _inject(self, with_: "_StagedApp", without: "_StagedApp | None", capacity: float) -> Mapping[str, Overloaded]:
        """First to the one that may shed. The other is minutes behind in the end, so it has the last run alone."""
        with_.ask(Staged.inject, self.course, capacity, drain=True)
        tracks = {WITH: with_.ask(Staged.track)}
        if without is not None:
            without.ask(Staged.inject, self.course, capacity, drain=False)
            without.ask(Staged.end)
            tracks[WITHOUT] = without.ask(Staged.track)
        return tracks

    def _stage(self, place: Arena, servers: str) -> "tuple[_StagedApp, _StagedApp]":
        """Both are started at once: nothing is measured yet."""
        wanted = {WITHOUT: dict.fromkeys(MINIMA, 1.0), WITH: MINIMA}
        epochs, epoch_s = self.epochs
        stagings = [
            Staging(name, servers, place.scratch / name, minima, self.warm_s, self.bursts, epochs, epoch_s, self.detail)
            for name, minima in wanted.items()
        ]
        with ThreadPoolExecutor() as threads:
            first, second = (threads.submit(_StagedApp, place, staging.name, staging) for staging in stagings)
            return first.result(), second.result()

    def _cost_of_shed(self, beside: "_StagedApp", rows: int) -> float:
        """In an app all of whose rows may go, in the Spark of the one that may shed."""
        name = "free"
        staging = replace(
            beside.staging, name=name, directory=beside.place.scratch / name, minima=dict.fromkeys(MINIMA, 0.0)
        )
        free = _StagedApp(beside.place, beside.process, staging)
        cost = cost_of_shed(free.burst, free.shed, rows, self.rounds)
        free.ask(Staged.leave)
        return cost

    def _findings(self, measured: Measured) -> Findings:
        figures: dict[str, Figure] = {"factor": self.factor}
        table = Table(figures)
        ours = measured.tracks[WITH]
        for what, measure, bar in (
            ("lag_cycles", worst_lag, "2"),
            ("recovered_cycles", recovered_cycles, "3"),
            ("p99_latency_s", p99_latency, ""),
        ):
            table.both(what, {name: measure(track) for name, track in measured.tracks.items()}, bar)
        errors = {name: accounting_error(track) for name, track in measured.tracks.items()}
        figures["accounting_error"] = sum(errors.values())
        table.rows.append(["accounting error", *(str(error) for error in errors.values()), "0"])
        for query, minimum in MINIMA.items():
            shares = [share for _, share in accuracies(ours, query)] or [1.0]
            figures[f"accuracy_{query}_mean"] = rounded(fmean(shares))
            figures[f"accuracy_{query}_worst"] = rounded(min(shares))
            table.rows.append(
                [f"accuracy of {query}, mean (worst)", f"{fmean(shares):.3f} ({min(shares):.3f})", "1", f"{minimum:g}"]
            )
        self._promises(ours, table)
        for name, cost in (measured.costs or {}).items():
            table.one(name, cost, "1.1" if name == "cost_of_kept_row" else "0.1")
        _machine(measured, table)
        table.both("capacity_rows_per_s", {name: measured.capacities.get(name) for name in (WITH, WITHOUT)})
        figures["rows_with"] = ours.sent
        series = {query: (minimum, accuracies(ours, query)) for query, minimum in MINIMA.items()}
        return Findings(
            self.name,
            ["", WITH, WITHOUT, "bar"],
            table.rows,
            figures,
            lambda axes: draw(axes, measured.tracks, self.course, measured.capacities[WITHOUT], series),
        )

    def _promises(self, track: Overloaded, table: Table) -> None:
        grown = growth(track)
        if grown is not None:
            table.one("lag_growth_rows", grown.lag_rows)
            table.one("foretold_growth_rows", grown.foretold_rows)
            table.one("growth_over_foretold", grown.lag_rows / grown.foretold_rows, "0.9 to 1.1")
        if self.step:
            answer = acted(track)
            table.one("acted_s", None if answer is None else answer.acted_s)
            table.one("acted_bar_s", None if answer is None else answer.bar_s)
            table.one("acted_over_bar", None if answer is None else answer.acted_s / answer.bar_s, "1")


def _capacities(without: "_StagedApp", with_: "_StagedApp", turns: int) -> tuple[dict[str, float], int]:
    """Drives a second that each keeps up with, measured in turn; and the drives of a long burst."""
    if not turns:
        only = without.ask(Staged.capacity)
        with_.burst(only.burst.rows)  # As warm as the other.
        return {WITHOUT: only.rows_per_s}, only.burst.rows
    found = [(without.ask(Staged.capacity), with_.ask(Staged.capacity)) for _ in range(turns)]
    capacities = {
        name: median(capacity.rows_per_s for capacity in told)
        for name, told in zip((WITHOUT, WITH), zip(*found, strict=True), strict=True)
    }
    return capacities, found[-1][0].burst.rows


def _machine(measured: Measured, table: Table) -> None:
    """How fast the machine itself was: in one injection over the other, and in its worst ten seconds."""
    found = {name: usual_speed(measured.speeds, t.began_s, t.ended_s) for name, t in measured.tracks.items()}
    ours, peers = found[WITH], found.get(WITHOUT)
    if ours is not None and peers is not None:
        table.one("machine_speed_with_over_without", ours / peers)
    table.one("machine_speed_worst", worst_speed(measured.speeds))
    table.one("machine_stolen_share", fmean(speed.stolen for speed in measured.speeds) if measured.speeds else 0.0)
