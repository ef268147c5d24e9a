"""Joins in an interval of event time: beside Spark's own, as their state grows, and while a worker comes."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from springtide.bench.experiments.join.growth import Grown, Growth
from springtide.bench.experiments.join.rescale import Rescale
from springtide.bench.experiments.join.throughput import Throughput
from springtide.bench.experiments.rescale import worst_over_median
from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Figures, Findings, rounded
from springtide.bench.harness.trial import Track

GROWTH_BAR = 1.5
RESCALE_BAR = 2.5


@dataclass(frozen=True)
class JoinBench:
    throughput: Throughput = field(default_factory=Throughput)
    growth: Growth = field(default_factory=Growth)
    rescale: Rescale = field(default_factory=Rescale)

    @classmethod
    def quick(cls, held: int) -> "JoinBench":
        """All of it in under two minutes."""
        return cls(
            Throughput(10_000, min(held, 40_000), rounds=1, epochs=4),
            Growth(10_000, 200_000, rows=2_000, rounds=1, epochs=5),
            Rescale(40_000, rows=2_000, workers=1, more=2, calm=4),
        )

    def run(self) -> Findings:
        with arena("join") as place:
            beside_spark = self.throughput.run(place)
        with arena("join-growth") as place:  # Without the memory that idle contestants would hold.
            grown = self.growth.run(place)
        with arena("join-rescale") as place:
            track = self.rescale.run(place)
        return together(beside_spark, grown, self.growth.rows, self.rescale, track)


def together(beside_spark: Findings, grown: Grown, rows: int, rescale: Rescale, track: Track) -> Findings:
    """One table, one picture, and all figures."""
    (span,) = track.spans
    worst = worst_over_median(track, span.began_at, span.ended_at)
    figures: dict[str, Figures] = {
        **beside_spark.figures,
        "growth": rounded(grown.ratio),
        "growth_epoch_s_few": rounded(grown.epoch_s(grown.few)),
        "growth_epoch_s_many": rounded(grown.epoch_s(grown.many)),
        "growth_rows_few": grown.few,
        "growth_rows_many": grown.many,
        "growth_state_mb": round(grown.state_bytes / 1e6),
        "rescale_worst_epoch_over_median": rounded(worst),
        "rescale_worst_while_starting_over_median": rounded(worst_over_median(track, span.asked_at, span.began_at)),
        "rescale_median_epoch_s": rounded(track.calm_epoch_s),
        "rescale_held": rescale.held,
        "rescale_state_mb": round(track.state_bytes / 1e6),
        "rescale_moved_slices": span.moved,
        "lost": track.lost,
        "duplicated": track.duplicated,
    }
    table = [
        *beside_spark.rows,
        *(
            [f"springtide, {held:,} rows wait", f"{rows / grown.epoch_s(held):,.0f}", f"{grown.epoch_s(held):.3f}"]
            for held in (grown.few, grown.many)
        ),
        ["growth", "", "", "", f"{grown.ratio:.2f}", f"{GROWTH_BAR}"],
        [
            f"springtide, {rescale.workers} workers, {rescale.held:,} wait",
            f"{rescale.rows / track.calm_epoch_s:,.0f}",
            f"{track.calm_epoch_s:.3f}",
        ],
        [f"worst epoch while it gets {rescale.more}", "", "", "", f"{worst:.2f}", f"{RESCALE_BAR}"],
    ]

    def draw(axes: Any) -> None:
        figure = axes.figure
        axes.remove()
        figure.set_size_inches(8, 12)
        panels = figure.subplots(3, 1)
        beside_spark.draw(panels[0])
        _draw_growth(panels[1], grown, rows)
        _draw_rescale(panels[2], rescale, track)

    headers = [*beside_spark.headers, "ratio", "bar"]
    return replace(beside_spark, headers=headers, rows=table, figures=figures, draw=draw)


def _draw_growth(axes: Any, grown: Grown, rows: int) -> None:
    for held, found in grown.times.items():
        axes.plot(range(1, len(found) + 1), found, marker=".", label=f"{held:,} rows wait")
    axes.set(title=f"Epochs of {rows:,} rows", xlabel="epoch, all rounds", ylabel="epoch time, s", ylim=(0, None))
    axes.legend()


def _draw_rescale(axes: Any, rescale: Rescale, track: Track) -> None:
    start, (span,) = track.reports[0].ended_at, track.spans
    ended = [report.ended_at - start for report in track.reports]
    gaps = [later - earlier for earlier, later in pairwise(ended)]
    axes.plot(ended[1:], gaps, marker=".", label="Springtide")
    axes.axvspan(span.asked_at - start, span.began_at - start, alpha=0.12, color="tab:gray", label="workers start")
    axes.axvspan(span.began_at - start, span.ended_at - start, alpha=0.25, color="tab:orange", label="state moves")
    title = f"Time between two results, {rescale.held:,} rows wait, {rescale.workers} to {rescale.more} workers"
    axes.set(title=title, xlabel="s", ylabel="s", ylim=(0, None))
    axes.legend()
