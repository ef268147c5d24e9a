"""What an epoch costs as the state grows: 10 000-row epochs over few and over many stored keys."""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from springtide.bench.harness.arena import arena
from springtide.bench.harness.contestants import ROCKSDB, Contestant, Load, SparkCount, Springtide
from springtide.bench.harness.findings import Findings, rounded

FILL_ROWS = 1_000_000


@dataclass(frozen=True)
class GrowthBench:
    few: int = 100_000
    many: int = 10_000_000
    rows: int = 10_000
    rounds: int = 3
    epochs: int = 20
    partitions: int = 2

    def run(self) -> Findings:
        with arena("state-growth") as place:
            times: dict[tuple[str, int], list[float]] = {}
            contestants = {
                (name, keys): self._contestant(name, place.scratch / f"{name}-{keys}")
                for name in ("springtide", "spark_rocksdb")
                for keys in (self.few, self.many)
            }
            for (_, keys), contestant in contestants.items():
                rows = min(keys, FILL_ROWS)
                place.round(contestant, Load(rows, keys, in_turn=True), -(-keys // rows))
            for _ in range(self.rounds):
                for (name, keys), contestant in contestants.items():
                    found = place.round(contestant, Load(self.rows, keys), self.epochs)
                    times.setdefault((name, keys), []).extend(found.epochs_s)
                    if found.last is not None and keys == self.many:
                        last = found.last.operators[0]
        memory = max(i.resident_bytes for i in last.instances)
        return self._findings(times, last.state_rows, last.state_bytes, memory, last.runs)

    def _contestant(self, name: str, directory: Path) -> Contestant:
        if name == "springtide":
            return Springtide(directory, self.partitions)
        return SparkCount(directory, ROCKSDB, self.partitions, name)

    def _findings(
        self, times: dict[tuple[str, int], list[float]], state_rows: int, state_bytes: int, memory: int, runs: int
    ) -> Findings:
        def ratio(name: str, of: Any) -> float:
            return float(of(times[name, self.many]) / of(times[name, self.few]))

        figures: dict[str, float | int | str] = {
            "ratio": rounded(ratio("springtide", median)),
            "mean_ratio": rounded(ratio("springtide", fmean)),
            "spark_rocksdb_ratio": rounded(ratio("spark_rocksdb", median)),
            "epoch_s_few": rounded(median(times["springtide", self.few])),
            "epoch_s_many": rounded(median(times["springtide", self.many])),
            "worst_epoch_s_many": rounded(max(times["springtide", self.many])),
            "worker_memory_bytes": memory,
            "state_rows": state_rows,
            "state_bytes": state_bytes,
            "runs": runs,
            "keys_few": self.few,
            "keys_many": self.many,
        }
        rows = [
            [name, f"{keys:,}", f"{median(found):.3f}", f"{fmean(found):.3f}", f"{max(found):.3f}"]
            for (name, keys), found in times.items()
        ]
        rows.append(["worker memory", "", f"{memory / 1e6:.0f} MB", "", ""])
        rows.append(["state on disk", f"{state_rows:,}", f"{state_bytes / 1e6:.0f} MB", f"{runs} runs", ""])

        def draw(axes: Any) -> None:
            for (name, keys), found in times.items():
                axes.plot(range(1, len(found) + 1), found, label=f"{name}, {keys:,} keys")
            axes.set(
                title=f"Epochs of {self.rows:,} rows over few and many stored keys",
                xlabel="epoch, all rounds",
                ylabel="epoch time, s",
                ylim=(0, None),
            )
            axes.legend()

        headers = ["contestant", "stored keys", "median epoch s", "mean", "worst"]
        return Findings("state-growth", headers, rows, figures, draw)
