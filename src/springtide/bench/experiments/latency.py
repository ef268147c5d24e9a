"""How long a small epoch takes, against Spark's own stateful query."""

from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import HDFS, Contestant, Load, SparkCount, Springtide
from springtide.bench.harness.findings import Findings, rounded


@dataclass(frozen=True)
class LatencyBench:
    rows: int = 1_000
    keys: int = 1_000
    rounds: int = 4
    epochs: int = 20
    warm_epochs: int = 60
    """For each contestant before the first round: the JVM compiles what it runs often."""
    partitions: int = 2

    def run(self) -> Findings:
        with arena("latency") as place:
            contestants: list[Contestant] = [
                Springtide(place.scratch / "springtide", self.partitions),
                SparkCount(place.scratch / "spark", HDFS, self.partitions, "spark"),
            ]
            times: dict[str, list[float]] = {c.name: [] for c in contestants}
            load = Load(self.rows, self.keys)
            for contestant in contestants:
                place.round(contestant, load, self.warm_epochs)
            for _ in range(self.rounds):
                for contestant in contestants:
                    times[contestant.name] += place.round(contestant, load, self.epochs).epochs_s
        return self._findings(times)

    def _findings(self, times: dict[str, list[float]]) -> Findings:
        ours, theirs = median(times["springtide"]), median(times["spark"])
        figures: dict[str, float | int | str] = {
            "ratio": rounded(ours / theirs),
            "springtide_epoch_s": rounded(ours),
            "spark_epoch_s": rounded(theirs),
            "springtide_p95_s": rounded(_p95(times["springtide"])),
            "spark_p95_s": rounded(_p95(times["spark"])),
            "rows": self.rows,
            "rounds": self.rounds,
        }
        rows = [[name, f"{median(found):.3f}", f"{_p95(found):.3f}"] for name, found in times.items()]

        def draw(axes: Any) -> None:
            for name, found in times.items():
                axes.plot(range(1, len(found) + 1), found, label=name)
            axes.set(
                title=f"Epochs of {self.rows:,} rows",
                xlabel="epoch, all rounds",
                ylabel="epoch time, s",
                ylim=(0, None),
            )
            axes.legend()

        return Findings("latency", ["contestant", "median epoch s", "95th percentile"], rows, figures, draw)


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]
