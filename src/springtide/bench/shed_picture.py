"""The picture of an overload: rates, what waits, accuracies and latency over time, with shedding and without."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from springtide.bench.overload import Overload, Overloaded

COLOURS = {"with": "tab:blue", "without": "tab:red"}
QUERIES = ("tab:green", "tab:purple")
BINS_S = 2.0
Lags = Callable[[Overloaded], list[tuple[float, float]]]


def draw(
    axes: Any, tracks: Mapping[str, Overloaded], course: Overload, lags: Lags, minima: Mapping[str, float]
) -> None:
    """Four panels, one below the other, on one clock."""
    figure = axes.figure
    axes.remove()
    figure.set_size_inches(9, 10)
    rates, lag, accuracy, latency = figure.subplots(4, 1, sharex=True)
    _draw_rates(rates, tracks)
    for name, track in tracks.items():
        lag.plot(*zip(*lags(track), strict=True), color=COLOURS[name], label=f"{name} shedding")
        times = [(r.ended_at - track.began_s, r.latency_s) for r in track.reports if r.ended_at > track.began_s]
        latency.plot(*zip(*times, strict=True), color=COLOURS[name], label=f"{name} shedding")
    lag.axhline(2, color="grey", linestyle="--", linewidth=1, label="2 cycles")
    lag.set(ylabel="cycles of arrivals\nthat wait", ylim=(0, None))
    lag.legend(loc="upper left", fontsize="small")
    _draw_accuracy(accuracy, tracks["with"], minima)
    latency.set(ylabel="latency of an\nepoch's newest drive, s", ylim=(0, None), xlabel="seconds")
    for panel in (rates, lag, accuracy, latency):
        panel.set_xlim(0, sum(course.phases_s))
        panel.grid(alpha=0.25)
        for when in np.cumsum(course.phases_s)[:-1]:
            panel.axvline(when, color="grey", alpha=0.4, linewidth=1)


def _draw_rates(axes: Any, tracks: Mapping[str, Overloaded]) -> None:
    track = tracks["with"]
    edges = np.arange(0, track.ended_s - track.began_s, BINS_S)
    sent = [track.sent_by(track.began_s + at) for at in edges]
    axes.plot(edges[1:], np.diff(sent) / BINS_S, color="black", label="sent")
    for name, each in tracks.items():
        found = [
            (after.ended_at - each.began_s, after.rows_in / (after.ended_at - before.ended_at))
            for before, after in pairwise(each.reports)
            if after.ended_at > each.began_s
        ]
        axes.plot(*zip(*found, strict=True), color=COLOURS[name], alpha=0.7, label=f"taken, {name} shedding")
    axes.axhline(track.capacity, color="grey", linestyle=":", linewidth=1, label="capacity")
    axes.set(ylabel="drives a second", ylim=(0, None), title="more drives than the machine can work on")
    axes.legend(loc="upper left", fontsize="small")


def _draw_accuracy(axes: Any, track: Overloaded, minima: Mapping[str, float]) -> None:
    for (query, minimum), colour in zip(minima.items(), QUERIES, strict=True):
        found = [
            (report.ended_at - track.began_s, q.accuracy)
            for report in track.reports for q in report.queries
            if q.query == query and q.offered and report.ended_at > track.began_s
        ]  # fmt: skip
        axes.plot(*zip(*found, strict=True), color=colour, drawstyle="steps-post", label=query)
        axes.axhline(minimum, color=colour, linestyle="--", linewidth=1, label=f"its minimum, {minimum:g}")
    axes.set(ylabel="accuracy with\nshedding", ylim=(0, 1.05))
    axes.legend(loc="lower left", fontsize="small", ncols=2)
