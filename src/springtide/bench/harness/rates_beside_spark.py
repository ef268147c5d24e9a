"""Rows a second of an app beside Spark's own query with either of its state stores: figures, table, picture."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from springtide.bench.harness.findings import Figure, Findings, rounded

OURS, WITH_HDFS, WITH_ROCKSDB = "springtide", "spark_hdfs", "spark_rocksdb"
"""The contestants' names in the figures."""


def rates_beside_spark(
    name: str, title: str, rows: int, times: Mapping[str, Sequence[float]], more: Mapping[str, Figure]
) -> Findings:
    """Of epochs of `rows` rows, by contestant; `more` are figures of the load."""
    rates = {contestant: rows / median(found) for contestant, found in times.items()}
    ours = rates[OURS]
    figures: dict[str, Figure] = {f"{contestant}_rows_per_s": rounded(rate) for contestant, rate in rates.items()}
    figures["ratio_hdfs"] = rounded(ours / rates[WITH_HDFS])
    figures["ratio_rocksdb"] = rounded(ours / rates[WITH_ROCKSDB])
    table = [
        [contestant, f"{rate:,.0f}", f"{median(times[contestant]):.3f}", f"{ours / rate:.2f}"]
        for contestant, rate in rates.items()
    ]

    def draw(axes: Any) -> None:
        for contestant, found in times.items():
            axes.plot(range(1, len(found) + 1), [rows / t for t in found], marker="o", label=contestant)
        axes.set(title=title, xlabel="epoch, all rounds", ylabel="rows/s", ylim=(0, None))
        axes.legend()

    headers = ["contestant", "rows/s", "median epoch s", "springtide is × faster"]
    return Findings(name, headers, table, {**figures, **more}, draw)
