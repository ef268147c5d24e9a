"""Keyed count in steady state: rows a second, against Spark's stateful query with both of its state stores."""

from dataclasses import dataclass

from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import HDFS, ROCKSDB, Contestant, Load, SparkCount, Springtide
from springtide.bench.harness.findings import Findings
from springtide.bench.harness.rates_beside_spark import WITH_HDFS, WITH_ROCKSDB, rates_beside_spark


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
                SparkCount(place.scratch / "hdfs", HDFS, self.partitions, WITH_HDFS),
                SparkCount(place.scratch / "rocksdb", ROCKSDB, self.partitions, WITH_ROCKSDB),
            ]
            times: dict[str, list[float]] = {c.name: [] for c in contestants}
            fill = Load(self.rows, self.keys, in_turn=True)
            for contestant in contestants:
                place.round(contestant, fill, -(-self.keys // self.rows))
            load = Load(self.rows, self.keys)
            for _ in range(self.rounds):
                for contestant in contestants:
                    times[contestant.name] += place.round(contestant, load, self.epochs).epochs_s
        title = f"Keyed count, {self.keys:,} keys, {self.rows:,} rows an epoch"
        more = {"rows": self.rows, "keys": self.keys, "partitions": self.partitions, "rounds": self.rounds}
        return rates_beside_spark("state", title, self.rows, times, more)
