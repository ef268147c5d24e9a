"""Growing and shrinking under load, against Spark's own stop, repartition and start."""

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from springtide.bench.harness.arena import arena, session
from springtide.bench.harness.contestants import ROCKSDB, Load, SparkCount, watch
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import Scale, Span, Track, Trial, run_trial
from springtide.engine.spark.internals import repartition_checkpoint

FILL_ROWS = 250_000


@dataclass(frozen=True)
class RescaleBench:
    """2 → 4 → 2 workers, or other numbers."""

    keys: int = 1_000_000
    few: int = 2
    many: int = 4
    rows: int = 10_000
    calm: int = 20

    def run(self) -> Findings:
        with arena("rescale") as place:
            changes = (Scale(self.many), Scale(self.few))
            trial = Trial(place.scratch / "ours", self.keys, self.rows, self.few, changes=changes, calm=self.calm)
            track = place.call("springtide", run_trial, trial)
            place.leave("springtide")
            arguments = (place.scratch / "spark", self.keys, self.rows, self.few, self.many)
            pause_s = place.call("spark", spark_pause, *arguments)
        return self._findings(track, pause_s)

    def _findings(self, track: Track, spark_pause_s: float) -> Findings:
        gap = track.calm_gap_s
        pauses = [max(track.gaps(s.began_at, s.ended_at), default=gap) - gap for s in track.spans]
        worst = [worst_over_median(track, s.began_at, s.ended_at) for s in track.spans]
        starting = worst_over_median(track, track.spans[0].asked_at, track.spans[0].began_at)
        pause = max(0.0, *pauses)
        figures: dict[str, float | int | str] = {
            "ratio": rounded(spark_pause_s / max(pause, 0.1)),
            "pause_s": rounded(pause),
            "spark_pause_s": rounded(spark_pause_s),
            "worst_epoch_over_median": rounded(max(worst)),
            "worst_epoch_while_starting_over_median": rounded(starting),
            "lost": track.lost,
            "duplicated": track.duplicated,
            "median_epoch_s": rounded(track.calm_epoch_s),
            "median_gap_s": rounded(gap),
            "keys": self.keys,
            "moved_slices": sum(s.moved for s in track.spans),
        }
        rows = [
            [f"springtide, to {span.change.workers} workers", f"{p:.2f}", f"{w:.2f}", f"{span.moved}"]
            for span, p, w in zip(track.spans, pauses, worst, strict=True)
        ]
        rows.append(["spark: stop, repartition, start", f"{spark_pause_s:.2f}", "", ""])
        headers = ["contestant", "pause s", "worst epoch over median", "slices moved"]
        return Findings("rescale", headers, rows, figures, lambda axes: draw(axes, track, spark_pause_s))


def worst_over_median(track: Track, after: float, until: float) -> float:
    """The longest epoch of a span, in medians of the calm ones."""
    found = [r.phases.total_s for r in track.epochs(after, until)]
    return max(found, default=track.calm_epoch_s) / track.calm_epoch_s


def draw(axes: Any, track: Track, spark_pause_s: float | None = None) -> None:
    """The time from one result to the next, with the changes marked, and Spark's one pause if it was measured."""
    start = track.reports[0].ended_at
    ended = [r.ended_at - start for r in track.reports]
    axes.plot(ended[1:], [later - earlier for earlier, later in pairwise(ended)], marker=".", label="Springtide")
    if spark_pause_s is not None:
        axes.axhline(spark_pause_s, color="tab:red", linestyle="--", label="Spark: stop, repartition, start")
    for span in track.spans:
        axes.axvspan(span.asked_at - start, span.began_at - start, alpha=0.12, color="tab:gray", label=_starting(span))
        axes.axvspan(span.began_at - start, span.ended_at - start, alpha=0.25, color="tab:orange", label=_moving(span))
    axes.set(title="Time between two results while workers come and go", xlabel="s", ylabel="s", ylim=(0, None))
    axes.legend(loc="center right")


def _starting(span: Span) -> str:
    return f"asked for {span.change.workers} workers"


def _moving(span: Span) -> str:
    return f"moving to {span.change.workers} workers"


def spark_pause(directory: Path, keys: int, rows: int, few: int, many: int) -> float:
    """Spark's own way with the same state: seconds without output from the stop to the first new epoch."""
    spark = session()
    contestant = SparkCount(directory, ROCKSDB, few, "spark")
    fill = min(keys, FILL_ROWS)
    contestant.round(spark, Load(fill, keys, in_turn=True), -(-keys // fill))
    load = Load(rows, keys)
    query = contestant.start(spark, load)
    try:
        watch(query, 3)
    finally:
        began = time.time()
        query.stop()
    last = _batch(query)
    repartition_checkpoint(spark, str(directory / "checkpoint"), many)
    again = replace(contestant, partitions=many).start(spark, load)
    try:
        while _batch(again) <= last:
            if not again.isActive:
                raise RuntimeError(f"the query ended: {again.exception()}")
            time.sleep(0.02)
        return time.time() - began
    finally:
        again.stop()


def _batch(query: StreamingQuery) -> int:
    """The last epoch of a query; -1 before the first."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
