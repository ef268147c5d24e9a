"""Whether a rescaling hurts more when there is more state."""

from dataclasses import dataclass
from typing import Any

from springtide.bench.experiments.rescale import worst_over_median
from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import Scale, Track, Trial, run_trial


@dataclass(frozen=True)
class RescaleGrowthBench:
    few: int = 100_000
    many: int = 2_000_000
    workers: int = 2
    more: int = 3
    rows: int = 10_000
    calm: int = 15

    def run(self) -> Findings:
        tracks: dict[int, Track] = {}
        with arena("rescale-growth") as place:
            for keys in (self.few, self.many):
                changes = (Scale(self.more), Scale(self.workers))
                directory = place.scratch / str(keys)
                trial = Trial(directory, keys, self.rows, self.workers, changes=changes, calm=self.calm)
                tracks[keys] = place.call(str(keys), run_trial, trial)
                place.leave(str(keys))
        return self._findings(tracks)

    def _findings(self, tracks: dict[int, Track]) -> Findings:
        worst = {
            keys: max(worst_over_median(track, s.began_at, s.ended_at) for s in track.spans)
            for keys, track in tracks.items()
        }
        figures: dict[str, float | int | str] = {
            "ratio": rounded(worst[self.many] / worst[self.few]),
            "worst_epoch_over_median_few": rounded(worst[self.few]),
            "worst_epoch_over_median_many": rounded(worst[self.many]),
            "lost": sum(t.lost for t in tracks.values()),
            "duplicated": sum(t.duplicated for t in tracks.values()),
            "keys_few": self.few,
            "keys_many": self.many,
        }
        copied = {keys: sum(s.bytes for s in track.spans) / 1e6 for keys, track in tracks.items()}
        rows = [
            [f"{keys:,}", f"{track.calm_epoch_s:.2f}", f"{worst[keys]:.2f}", f"{copied[keys]:.1f}"]
            for keys, track in tracks.items()
        ]

        def draw(axes: Any) -> None:
            for keys, track in tracks.items():
                start = track.reports[0].ended_at
                times = [r.ended_at - start for r in track.reports]
                axes.plot(times, [r.phases.total_s for r in track.reports], marker=".", label=f"{keys:,} keys")
            title = f"{self.workers} to {self.more} workers and back"
            axes.set(title=title, xlabel="s", ylabel="epoch time, s", ylim=(0, None))
            axes.legend()

        headers = ["keys", "median epoch s", "worst epoch over median", "MB copied"]
        return Findings("rescale-growth", headers, rows, figures, draw)
