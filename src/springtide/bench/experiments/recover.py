"""Losing workers to SIGKILL: how long until results come again, and from where."""

from dataclasses import dataclass

from springtide.bench.experiments.rescale import draw
from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import Kill, Track, Trial, run_trial


@dataclass(frozen=True)
class RecoverBench:
    workers: int = 4
    kill: int = 1
    keys: int = 200_000
    rows: int = 10_000
    calm: int = 20

    def run(self) -> Findings:
        with arena("recover") as place:
            changes = (Kill(self.kill),)
            trial = Trial(place.scratch / "ours", self.keys, self.rows, self.workers, changes=changes, calm=self.calm)
            track = place.call("springtide", run_trial, trial)
        return self._findings(track)

    def _findings(self, track: Track) -> Findings:
        span = track.spans[0]
        after = [r for r in track.reports if r.ended_at > span.asked_at]
        figures: dict[str, float | int | str] = {
            "recovery_s": rounded(span.ended_at - span.asked_at),
            "epochs_retried": sum(1 for r in after if r.retries),
            "durable_reads": sum(o.durable_reads for r in after for o in r.operators),
            "lost": track.lost,
            "duplicated": track.duplicated,
            "median_epoch_s": rounded(track.calm_epoch_s),
            "workers": self.workers,
            "killed": self.kill,
            "keys": self.keys,
        }
        rows = [[name, str(value)] for name, value in figures.items()]
        return Findings("recover", ["measure", "value"], rows, figures, lambda axes: draw(axes, track))
