"""The picture of migrations: how long each strategy took, and input, output and latency around each request."""

from collections.abc import Sequence
from typing import Any

from springtide.bench.experiments.migrate.journey import Journey, Passed
from springtide.metrics.migration.timeline import timeline

COLOURS = {
    "restart": "tab:red",
    "drain": "tab:blue",
    "capture": "tab:green",
    "handover": "tab:orange",
    "progressive": "tab:purple",
}
WINDOW_S = 5.0
"""Rates and latency are averages over this time."""


def draw(axes: Any, journeys: Sequence[Journey]) -> None:
    """For one journey, its timelines; for several, bars of all their migrations, and the timelines of the longest."""
    figure = axes.figure
    axes.remove()
    if len(journeys) == 1:
        figure.set_size_inches(10, 11)
        panels = figure.subplots(4, 1)
        _bars(panels[0], journeys[0].passed, journeys[0].dataflow)
        _timelines(panels[1:], journeys[0].passed, journeys[0].dataflow)
        return
    figure.set_size_inches(12, 3 * len(journeys) + 9)
    panels = figure.subplots(len(journeys) + 3, 1)
    for panel, journey in zip(panels, journeys, strict=False):
        _bars(panel, journey.passed, journey.dataflow)
    shown = max(journeys, key=lambda journey: (len(journey.passed), journey.dataflow == "grid"))
    inwards = [passed for passed in shown.passed if passed.leg.direction == "in"]
    _timelines(panels[-3:], inwards, f"{shown.dataflow}, in")


def _bars(axes: Any, passed: Sequence[Passed], name: str) -> None:
    """Restore, then what it took until old rows were out, then until repeated ones were: as they follow each other."""
    for place, each in enumerate(passed):
        found = each.measures
        at = 0.0
        for label, value, shade in (
            ("restore", found.restore_s, 1.0),
            ("catch-up", found.catchup_s, 0.6),
            ("recovery", found.recovery_s, 0.3),
        ):
            if value is not None and value > at:
                colour = COLOURS.get(each.leg.strategy, "tab:gray")
                axes.barh(place, value - at, left=at, color=colour, alpha=shade)
                axes.text(value, place, f" {label} {value:.1f}", va="center", fontsize="x-small")
                at = value
    axes.set_yticks(range(len(passed)), [f"{each.leg.strategy}, {each.leg.direction}" for each in passed])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set(title=f"{name}: seconds from the request", xlim=(0, None))


def _timelines(panels: Sequence[Any], passed: Sequence[Passed], name: str) -> None:
    incoming, outgoing, latency = panels
    for each in passed:
        moments = timeline(each.reports, each.course.asked_at, window_s=WINDOW_S, step_s=0.5)
        at, colour = [moment.at_s for moment in moments], COLOURS.get(each.leg.strategy, "tab:gray")
        incoming.plot(at, [moment.rows_in_per_s for moment in moments], color=colour, label=each.leg.strategy)
        outgoing.plot(at, [moment.rows_out_per_s for moment in moments], color=colour)
        known = [(moment.at_s, moment.latency_s) for moment in moments if moment.latency_s is not None]
        latency.plot([t for t, _ in known], [value for _, value in known], color=colour)
    incoming.set(title=f"{name}: around the request, averages over {WINDOW_S:g} s", ylabel="rows/s in")
    incoming.legend(fontsize="small", ncols=3)
    outgoing.set(ylabel="rows/s out")
    latency.set(ylabel="latency, s", xlabel="seconds since the request")
    for panel in panels:
        panel.axvline(0, color="grey", linestyle=":")
        panel.set_ylim(0, None)
        panel.grid(alpha=0.25)
