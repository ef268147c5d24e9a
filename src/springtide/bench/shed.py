"""More drives than the machine can work on: with shedding, and without it, on the same injection."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from springtide.bench.arena import arena
from springtide.bench.figures import Findings, rounded
from springtide.bench.overload import Numbers, Overload, Overloaded, run_overload
from springtide.bench.shed_picture import draw
from springtide.control.economy_config import EconomyConfig
from springtide.metrics.report import EpochReport
from springtide.testing.kafka import Broker

MINIMA = {"speeds": 0.4, "zones": 0.6}
CYCLE_S = EconomyConfig().cycle_s


def lag_cycles(track: Overloaded) -> list[tuple[float, float]]:
    """When an epoch began, and how much had waited for it: as many cycles of the controller as it takes to arrive.

    That is when most rows wait, as the epoch then takes what it may. The last one is at the end of the injection.
    """
    found = []
    taken = [0, *(sum(rows) for rows in zip(*track.taken.values(), strict=True))]
    starts = [report.ended_at - report.phases.total_s for report in track.reports]
    for at, before in [*zip(starts, taken, strict=False), (track.ended_s, _taken_by(track.ended_s, starts, taken))]:
        if track.began_s <= at <= track.ended_s:
            rate = (track.sent_by(at) - track.sent_by(at - CYCLE_S)) / CYCLE_S
            found.append((at - track.began_s, max(0.0, track.sent_by(at) - before) / rate / CYCLE_S))
    return found


def _taken_by(at: float, starts: list[float], taken: list[int]) -> int:
    """Rows of the epochs that had begun by a time."""
    return taken[bisect_right(starts, at)]


def latencies(track: Overloaded) -> tuple[Numbers, Numbers]:
    """Of each drive taken while the rate rose and later: from its sending to its publication; and how much it counts.

    A drive counts for each query by the share of the epoch's drives that were processed for it.
    """
    found, weights = [], []
    for topic, arrivals in track.arrivals.items():
        before = 0
        for report, until in zip(track.reports, track.taken[topic], strict=True):
            if report.ended_at >= track.began_s and until > before:
                sent_at = arrivals.sent_at(np.arange(before, until, dtype=np.float64) + 0.5)
                found.append(report.ended_at - sent_at)
                weights.append(np.full(until - before, _processed(report)))
            before = until
    return np.concatenate(found), np.concatenate(weights)


def _processed(report: EpochReport) -> float:
    return fmean(query.accuracy for query in report.queries) if report.queries else 1.0


def percentile(values: Numbers, weights: Numbers, share: float) -> float:
    """The value that so large a share of the weight does not exceed."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1])])


def accounting_error(track: Overloaded) -> int:
    """Drives that are unaccounted for: in an epoch's own sums, between the topics and the queries, in the results."""
    reports = [report for report in track.reports if not report.replayed]
    queries = [query for report in reports for query in report.queries]
    error = sum(abs(q.offered - q.processed - q.shed - q.dead_letters) for q in queries)
    taken = sum(report.rows_in for report in reports)
    for query, counted in track.counted.items():
        mine = [q for q in queries if q.query == query]
        if mine:
            error += abs(track.sent - sum(q.offered for q in mine)) + abs(sum(q.processed for q in mine) - counted)
        else:
            error += abs(taken - counted)
    return error


def accuracies(track: Overloaded, query: str) -> list[tuple[float, float]]:
    """Of a query, cycle by cycle while the rate rose and later: when it ended, and the share that was processed in it.

    By cycle, as chance decides which drives are kept, and in one epoch it may be some more or less.
    """
    cycles: dict[int, tuple[int, int]] = {}
    for report in track.reports:
        for q in report.queries:
            if q.query == query and track.began_s <= report.ended_at <= track.ended_s:
                number = int((report.ended_at - track.began_s) / CYCLE_S)
                processed, good = cycles.get(number, (0, 0))
                cycles[number] = processed + q.processed, good + q.offered - q.dead_letters
    return [((n + 1) * CYCLE_S, processed / good) for n, (processed, good) in sorted(cycles.items()) if good]


@dataclass(frozen=True)
class ShedBench:
    phases_s: tuple[float, float, float, float] = (50.0, 60.0, 20.0, 15.0)
    settle_s: float = 15.0
    apart: bool = True
    """A Spark of its own for each."""
    warm_s: float = 45.0
    """The longest that each may take to warm up."""

    def run(self) -> Findings:
        with Broker() as broker, arena("shed") as place:
            peer = Overload(
                "without", broker.servers, place.scratch / "without", dict.fromkeys(MINIMA, 1.0), self.phases_s,
                self.settle_s, warm_s=self.warm_s,
            )  # fmt: skip
            without = place.call("without" if self.apart else "both", run_overload, peer)
            if self.apart:
                place.leave("without")
            ours = replace(
                peer, name="with", directory=place.scratch / "with", minima=MINIMA, capacity=without.capacity
            )
            tracks = {"with": place.call("with" if self.apart else "both", run_overload, ours), "without": without}
        return self._findings(tracks, ours)

    def _findings(self, tracks: dict[str, Overloaded], course: Overload) -> Findings:
        figures: dict[str, float | int | str] = {}
        rows = []
        for what, measure in (("lag_cycles", _worst_lag), ("p99_latency_s", _p99)):
            found = {name: rounded(measure(track)) for name, track in tracks.items()}
            figures |= {f"{what}_{name}": value for name, value in found.items()}
            rows.append([what.replace("_", " "), *(f"{found[name]:g}" for name in tracks)])
        errors = {name: accounting_error(track) for name, track in tracks.items()}
        figures["accounting_error"] = sum(errors.values())
        rows.append(["accounting error", *(str(errors[name]) for name in tracks)])
        for query in MINIMA:
            shares = [share for _, share in accuracies(tracks["with"], query)] or [1.0]
            figures[f"accuracy_{query}_mean"] = rounded(fmean(shares))
            figures[f"accuracy_{query}_worst"] = rounded(min(shares))
            rows.append([f"accuracy of {query}, mean (worst)", f"{fmean(shares):.3f} ({min(shares):.3f})", "1"])
        figures |= {"capacity_rows_per_s": round(tracks["with"].capacity), "rows_with": tracks["with"].sent}
        series = {query: (minimum, accuracies(tracks["with"], query)) for query, minimum in MINIMA.items()}
        return Findings(
            "shed", ["", *tracks], rows, figures, lambda axes: draw(axes, tracks, course, lag_cycles, series)
        )


def _worst_lag(track: Overloaded) -> float:
    return max((lag for _, lag in lag_cycles(track)), default=0.0)


def _p99(track: Overloaded) -> float:
    return percentile(*latencies(track), 0.99)
