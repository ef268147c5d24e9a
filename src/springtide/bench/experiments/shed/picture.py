"""The picture of an overload: rates, what waits, accuracies and latency over time, with shedding and without."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from springtide.bench.experiments.shed.figures import lag_cycles
from springtide.bench.experiments.shed.overload import Overload, Overloaded
from springtide.metrics.report import EpochReport

COLOURS = {"with": "tab:blue", "without": "tab:red"}
QUERIES = ("tab:green", "tab:purple")
BIN_S = 2.0
Points = Sequence[tuple[float, float]]


def draw(
    axes: Any,
    tracks: Mapping[str, Overloaded],
    course: Overload,
    capacity: float,
    accuracies: Mapping[str, tuple[float, Points]],
) -> None:
    """Four panels, one below the other, on one clock; `accuracies` are those of each query, after its minimum."""
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(9, 10)
    rates, lag, accuracy, latency = figure.subplots(4, 1, sharex=True)
    _draw_rates(rates, tracks, capacity)
    for name, track in tracks.items():
        _line(lag, lag_cycles(track), color=COLOURS[name], label=f"{name} shedding")
        times = [(r.ended_at - track.began_s, r.latency_s) for r in _during(track) if r.latency_s is not None]
        _line(latency, times, color=COLOURS[name], label=f"{name} shedding")
    lag.axhline(2, color="grey", linestyle="--", linewidth=1, label="2 cycles")
    lag.set(ylabel="cycles of arrivals\nthat wait", ylim=(0, None))
    lag.legend(loc="upper left", fontsize="small")
    for (query, (minimum, points)), colour in zip(accuracies.items(), QUERIES, strict=True):
        _line(accuracy, points, color=colour, drawstyle="steps-pre", label=query)
        accuracy.axhline(minimum, color=colour, linestyle="--", linewidth=1, label=f"its minimum, {minimum:g}")
    accuracy.set(ylabel="accuracy\nwith shedding", ylim=(0, 1.05))
    accuracy.legend(loc="lower left", fontsize="small", ncols=2)
    latency.set(ylabel="latency of an epoch's\nnewest drive, s", ylim=(0, None), xlabel="seconds")
    for panel in (rates, lag, accuracy, latency):
        panel.set_xlim(0, sum(course.phases_s))
        panel.grid(alpha=0.25)
        for when in np.cumsum(course.phases_s)[:-1]:
            panel.axvline(when, color="grey", alpha=0.4, linewidth=1)


def _draw_rates(axes: Any, tracks: Mapping[str, Overloaded], capacity: float) -> None:
    track = tracks["with"]
    edges = np.arange(0, track.ended_s - track.began_s, BIN_S)
    sent = [track.sent_by(track.began_s + at) for at in edges]
    sent_rates = np.diff(sent) / BIN_S
    axes.plot(edges[1:] - BIN_S / 2, sent_rates, color="black", label="sent")
    for name, each in tracks.items():
        reports = _during(each)
        found = [
            (after.ended_at - each.began_s, after.rows_in * _kept(after) / (after.ended_at - before.ended_at))
            for before, after in pairwise(reports)
        ]
        _line(axes, found, color=COLOURS[name], alpha=0.7, label=f"processed, {name} shedding")
    axes.axhline(capacity, color="grey", linestyle=":", linewidth=1, label="capacity")
    top = 1.4 * float(sent_rates.max())  # Room for the legend above the lines.
    axes.set(ylabel="drives a second", ylim=(0, top), title="more drives than the machine can work on")
    axes.legend(loc="upper left", fontsize="small", ncols=2)


def _during(track: Overloaded) -> list[EpochReport]:
    return [report for report in track.reports if track.began_s <= report.ended_at <= track.ended_s]


def _kept(report: EpochReport) -> float:
    """The share of an epoch's drives that were processed, on average over the queries."""
    return fmean(query.accuracy for query in report.queries) if report.queries else 1.0


def _line(axes: Any, points: Points, **how: Any) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), **how)
