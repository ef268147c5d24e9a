"""Keyed count in steady state: rows a second, against Spark's stateful query with both of its state stores."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import HDFS, ROCKSDB, Contestant, Load, SparkCount, Springtide
from springtide.bench.harness.findings import Findings, rounded


@dataclass(frozen=True)
class StateBench:
    rows: int = 1_000_000
    keys: int = 1_000_000
    rounds: int = 3
    epochs: int = 6
    partitions: int = 2

    def run(self) -> Findings:
        with arena("state") as place:
            contestants: list[Contestant] = [
                Springtide(place.scratch / "springtide", self.partitions),
                SparkCount(place.scratch / "hdfs", HDFS, self.partitions, "spark_hdfs"),
                SparkCount(place.scratch / "rocksdb", ROCKSDB, self.partitions, "spark_rocksdb"),
            ]
            times: dict[str, list[float]] = {c.name: [] for c in contestants}
            fill = Load(self.rows, self.keys, in_turn=True)
            for contestant in contestants:
                place.round(contestant, fill, -(-self.keys // self.rows))
            load = Load(self.rows, self.keys)
            for _ in range(self.rounds):
                for contestant in contestants:
                    times[contestant.name] += place.round(contestant, load, self.epochs).epochs_s
        return self._findings(times)

    def _findings(self, times: dict[str, list[float]]) -> Findings:
        rates = {name: self.rows / median(found) for name, found in times.items()}
        ours = rates["springtide"]
        figures: dict[str, float | int | str] = {f"{name}_rows_per_s": rounded(rate) for name, rate in rates.items()}
        figures["ratio_hdfs"] = rounded(ours / rates["spark_hdfs"])
        figures["ratio_rocksdb"] = rounded(ours / rates["spark_rocksdb"])
        figures |= {"rows": self.rows, "keys": self.keys, "partitions": self.partitions, "rounds": self.rounds}
        rows = [
            [name, f"{rate:,.0f}", f"{median(times[name]):.3f}", f"{ours / rate:.2f}"] for name, rate in rates.items()
        ]

        def draw(axes: Any) -> None:
            for name, found in times.items():
                axes.plot(range(1, len(found) + 1), [self.rows / t for t in found], marker="o", label=name)
            axes.set(
                title=f"Keyed count, {self.keys:,} keys, {self.rows:,} rows an epoch",
                xlabel="epoch, all rounds",
                ylabel="rows/s",
                ylim=(0, None),
            )
            axes.legend()

        headers = ["contestant", "rows/s", "median epoch s", "springtide is × faster"]
        return Findings("state", headers, rows, figures, draw)
