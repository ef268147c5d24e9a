"""What a run under overload comes to: how much waited, how old results were, whether every drive is accounted for."""

from bisect import bisect_right
from statistics import fmean

import numpy as np

from springtide.bench.experiments.shed.overload import Numbers, Overloaded
from springtide.control.shed.config import SheddingConfig
from springtide.metrics.report import EpochReport

WITH, WITHOUT = "with", "without"
CYCLE_S = SheddingConfig().cycle_s
CALM = 1.0
"""The cycles of arrivals that may wait in an app that keeps up."""


def lag_cycles(track: Overloaded) -> list[tuple[float, float]]:
    """When an epoch began, and how much had waited for it: as many cycles of the controller as it takes to arrive.

    That is when most rows wait, as the epoch then takes what it may. The last one is at the end of the injection.
    """
    found = []
    starts, taken = track.starts_s, track.taken_before
    at_end = taken[bisect_right(starts, track.ended_s)]
    for at, before in [*zip(starts, taken, strict=False), (track.ended_s, at_end)]:
        if track.began_s <= at <= track.ended_s:
            rate = (track.sent_by(at) - track.sent_by(at - CYCLE_S)) / CYCLE_S
            found.append((at - track.began_s, max(0.0, track.sent_by(at) - before) / rate / CYCLE_S))
    return found


def worst_lag(track: Overloaded) -> float:
    """The most that waited, in cycles of arrivals."""
    return max((lag for _, lag in lag_cycles(track)), default=0.0)


def recovered_cycles(track: Overloaded) -> float | None:
    """From when the rate began to fall until less than a cycle of arrivals waited, for good; in cycles.

    0 if less than a cycle of arrivals waited all the time; None if more than one still waited at the end of the run.
    """
    lags = lag_cycles(track)
    behind = [number for number, (_, lag) in enumerate(lags) if lag >= CALM]
    if not behind:
        return 0.0
    if behind[-1] + 1 == len(lags):
        return None
    caught_up, _ = lags[behind[-1] + 1]
    return max(0.0, caught_up - (track.peak_s[1] - track.began_s)) / CYCLE_S


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
    """The value that this share of the weight does not exceed."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, share * reached[-1])])


def p99_latency(track: Overloaded) -> float:
    """From the sending of a drive to its publication."""
    return percentile(*latencies(track), 0.99)


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


def sheds(report: EpochReport) -> bool:
    """Whether rows of an epoch were shed for some query."""
    return any(query.shed for query in report.queries)
