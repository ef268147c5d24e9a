"""What replicas cost: the throughput with one and two of them against that with none."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from springtide.bench.harness.arena import arena
from springtide.bench.harness.findings import Findings, rounded
from springtide.bench.harness.trial import Track, Trial, run_trial
from springtide.engine.pool.replicator import Checkpoint


@dataclass(frozen=True)
class ReplicationBench:
    keys: int = 200_000
    rows: int = 200_000
    workers: int = 3
    rounds: int = 2
    epochs: int = 15
    practice: bool = True
    """A round that does not count, before the others."""
    stored: int = 1_000_000
    changed: int = 10_000
    """For the size of a peer checkpoint: keys in the state, and rows an epoch."""

    def run(self) -> Findings:
        tracks: dict[int, list[Track]] = {0: [], 1: [], 2: []}
        with arena("replication") as place:
            for number in range(self.rounds + self.practice):
                for replicas in tracks:
                    directory = place.scratch / f"{replicas}-{number}"
                    trial = Trial(directory, self.keys, self.rows, self.workers, replicas, calm=self.epochs)
                    track = place.call("springtide", run_trial, trial)
                    if number >= self.practice:
                        tracks[replicas].append(track)
            large = Trial(place.scratch / "large", self.stored, self.changed, self.workers, 1, calm=4 * self.epochs)
            checkpoints = place.call("springtide", run_trial, large).checkpoints
        return self._findings(tracks, checkpoints)

    def _findings(self, tracks: dict[int, list[Track]], checkpoints: Sequence[Checkpoint]) -> Findings:
        times = {r: [e.phases.total_s for t in found for e in t.reports[3:]] for r, found in tracks.items()}
        rate = {r: self.rows / median(found) for r, found in times.items()}
        shares = [c.bytes / c.state_bytes for c in checkpoints[1:] if c.state_bytes]
        figures: dict[str, float | int | str] = {
            "cost_r1": rounded(1 - rate[1] / rate[0]),
            "cost_r2": rounded(1 - rate[2] / rate[0]),
            "checkpoint_share": rounded(median(shares)) if shares else 0.0,
            "rows_per_s_r0": rounded(rate[0]),
            "rows_per_s_r1": rounded(rate[1]),
            "rows_per_s_r2": rounded(rate[2]),
            "lost": sum(t.lost for found in tracks.values() for t in found),
            "duplicated": sum(t.duplicated for found in tracks.values() for t in found),
            "workers": self.workers,
            "keys": self.keys,
            "rows": self.rows,
        }
        rows = [
            [f"{r}", f"{rate[r]:,.0f}", f"{median(found):.3f}", f"{1 - rate[r] / rate[0]:.1%}"]
            for r, found in times.items()
        ]

        def draw(axes: Any) -> None:
            for r, found in times.items():
                axes.plot(range(1, len(found) + 1), found, label=f"{r} replicas")
            axes.set(title=f"Epochs of {self.rows:,} rows", xlabel="epoch, all rounds", ylabel="s", ylim=(0, None))
            axes.legend()

        return Findings("replication", ["replicas", "rows/s", "median epoch s", "cost"], rows, figures, draw)
