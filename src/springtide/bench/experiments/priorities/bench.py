"""Queries that matter more keep their accuracy, the others give way, and none falls below what its owner accepts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from springtide.bench.experiments.priorities.scenarios import Played, Scenario, Seen, play
from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Findings, rounded
from springtide.control.shed.config import SheddingConfig
from springtide.metrics.report import QueryReport

CYCLE_S = SheddingConfig().cycle_s
CHANCE = 0.02
"""Accuracies that differ by less are equal: which rows are shed is by chance."""
EQUAL = Scenario(
    "equal priorities",
    170.0,
    drives=((0, 400), (20, 1100), (60, 400), (85, 1300), (150, 500)),
)
RANKED = Scenario(
    "ranked queries",
    170.0,
    drives=((0, 600), (80, 1200), (140, 600)),
    readings=((0, 200), (30, 1200), (140, 300)),
    priorities={"zones": 3, "speeds": 2, "sensors": 1},
)


@dataclass(frozen=True)
class Cycle:
    """One query in one cycle of the controller."""

    number: int
    query: str
    offered: int
    processed: int
    shed: int
    dead_letters: int
    priority: int
    minimum: float
    workers: frozenset[str]
    """Who worked for it all the time."""

    @property
    def accuracy(self) -> float:
        good = self.offered - self.dead_letters
        return self.processed / good if good else 1.0


def cycles(played: Played) -> list[Cycle]:
    """What each query got in each whole cycle since the load began."""
    found: list[Cycle] = []
    last = int(played.scenario.seconds // CYCLE_S) - 1
    for app in played.apps:
        sums: dict[tuple[int, str], list[QueryReport]] = {}
        for report in app.reports:
            number = int((report.ended_at - played.began_at) // CYCLE_S)
            for query in report.queries if 0 <= number <= last else ():
                sums.setdefault((number, query.query), []).append(query)
        for (number, name), some in sums.items():
            at = played.began_at + number * CYCLE_S
            found.append(
                Cycle(
                    number,
                    name,
                    sum(q.offered for q in some),
                    sum(q.processed for q in some),
                    sum(q.shed for q in some),
                    sum(q.dead_letters for q in some),
                    some[0].priority,
                    some[0].minimum_accuracy,
                    _workers(app, name, at),
                )
            )
    return found


def _workers(app: Seen, query: str, at: float) -> frozenset[str]:
    """The workers of the step that a query takes its rows from, all through the cycle that begins then."""
    step = {"speeds": "speeds-of", "zones": "zones-of", "sensors": "neighbours"}[query]
    first = [owners for since, owners in app.owners if since <= at][-1:] or [app.owners[0][1]]
    then = [owners for since, owners in app.owners if at < since <= at + CYCLE_S]
    return frozenset.intersection(*(frozenset(owners.get(step, ())) for owners in (*first, *then)))


def below_minimum(found: list[Cycle]) -> list[Cycle]:
    """The cycles in which a query had less than its owner accepts."""
    return [cycle for cycle in found if cycle.offered and cycle.accuracy < cycle.minimum]


def inversions(found: list[Cycle]) -> list[tuple[Cycle, Cycle]]:
    """The cycles in which a query shed more than one of lower priority on the same worker, which had some to give."""
    return [
        (high, low)
        for high, low in permutations(found, 2)
        if high.number == low.number
        and high.priority > low.priority
        and high.workers & low.workers
        and high.accuracy < low.accuracy - CHANCE
        and low.accuracy > low.minimum + 2 * CHANCE
    ]


def moves(played: Played) -> Iterator[tuple[float, str]]:
    """When, since the load began, which step went to other workers."""
    for app in played.apps:
        for (_, before), (at, after) in zip(app.owners, app.owners[1:], strict=False):
            yield from ((at - played.began_at, step) for step in after if before.get(step) != after[step])


@dataclass(frozen=True)
class PrioritiesBench:
    scenarios: tuple[Scenario, ...] = (EQUAL, RANKED)

    @classmethod
    def quick(cls) -> "PrioritiesBench":
        """The second one, shorter."""
        short = replace(RANKED, seconds=40.0, lead_s=40.0, drives=((0, 900),), readings=((0, 900),))
        return cls((short,))

    def run(self) -> Findings:
        found = {}
        with arena("priorities") as place:
            for scenario in self.scenarios:
                directory = place.scratch / scenario.name.replace(" ", "-")
                found[scenario.name] = place.call(scenario.name, play, scenario, directory, SheddingConfig())
                place.leave(scenario.name)
        return _findings(found)


def _findings(found: Mapping[str, Played]) -> Findings:
    rows = []
    totals = dict.fromkeys(("below_minimum", "inversions", "moves", "accounting_error"), 0)
    worst_s: dict[str, float | int | str] = {}
    for name, played in found.items():
        seen = cycles(played)
        below, inverted, moved = below_minimum(seen), inversions(seen), list(moves(played))
        queries = [query for app in played.apps for report in app.reports for query in report.queries]
        error = sum(abs(q.offered - q.processed - q.shed - q.dead_letters) for q in queries)
        for figure, value in zip(totals, (len(below), len(inverted), len(moved), error), strict=True):
            totals[figure] += value
        worst = max((r.latency_s or 0.0 for app in played.apps for r in app.reports), default=0.0)
        for query in dict.fromkeys(c.query for c in seen):
            of = [c for c in seen if c.query == query]
            rows.append(
                [
                    name,
                    query,
                    str(of[0].priority),
                    f"{of[0].minimum:.0%}",
                    f"{min(c.accuracy for c in of):.1%}",
                    f"{sum(c.processed for c in of) / max(1, sum(c.offered for c in of)):.1%}",
                    str(sum(c in below for c in of)),
                    str(sum(c is high for c in of for high, _ in inverted)),
                ]
            )
        worst_s[f"worst_latency_s_{name.split()[0]}"] = rounded(worst)
    headers = ["scenario", "query", "priority", "minimum", "least", "overall", "cycles below", "inversions"]
    return Findings("priorities", headers, rows, {**totals, **worst_s}, lambda axes: _draw(axes, found))


def _draw(axes: Any, found: Mapping[str, Played]) -> None:
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(6.5 * len(found), 8)
    panels = figure.subplots(3, len(found), squeeze=False, sharex="col")
    for column, (name, played) in enumerate(found.items()):
        rate, accuracy, latency = (row[column] for row in panels)
        seen = cycles(played)
        for number, query in enumerate(dict.fromkeys(c.query for c in seen)):
            of = sorted((c for c in seen if c.query == query), key=lambda c: c.number)
            colour = f"C{number}"
            at = [c.number * CYCLE_S for c in of]
            label = f"{query} (priority {of[0].priority})"
            accuracy.step(at, [100 * c.accuracy for c in of], where="post", color=colour, label=label)
            accuracy.axhline(100 * of[0].minimum, color=colour, linestyle=":")
            rate.step(at, [c.offered / CYCLE_S for c in of], where="post", color=colour, alpha=0.4)
            rate.step(at, [c.processed / CYCLE_S for c in of], where="post", color=colour)
        for number, app in enumerate(played.apps):
            times = [(r.ended_at - played.began_at, r.latency_s or 0.0) for r in app.reports]
            late = [(t, s) for t, s in times if t >= 0]
            latency.plot(*zip(*late, strict=True), color=f"C{2 * number}", label=app.app)
        for when, step in moves(played):
            for panel in (rate, accuracy, latency):
                panel.axvline(when, color="grey", linewidth=1)
            latency.annotate(f"{step} moves", (when, 0), rotation=90, fontsize="x-small", va="bottom", ha="right")
        rate.set(title=name, ylabel="rows/s offered (pale), processed")
        accuracy.set(ylabel="accuracy, % (dotted: minimum)", ylim=(0, 105))
        latency.set(ylabel="latency, s", xlabel="seconds", ylim=(0, None))
        accuracy.legend(fontsize="small", loc="lower left")
        latency.legend(fontsize="small", loc="upper left")
