"""Whether an app can run for weeks: what the driver's processes take as time goes on, and what an epoch takes."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from springtide.app import App
from springtide.bench.experiments.soak.vitals import Sampler, Vitals, per_hour
from springtide.bench.harness.arena import Arena, arena
from springtide.bench.harness.contestants import HDFS
from springtide.bench.harness.findings import Figure, Findings, rounded
from springtide.connectors import sinks, sources
from springtide.engine.lifecycle.running import Running
from springtide.engine.spark.session import SessionConfig, make_session
from springtide.metrics.report import EpochReport
from springtide.state import aggregates as agg
from springtide.workloads.dataflow_app import build
from springtide.workloads.dataflows import GRID

SHARE = 0.7
"""Of the time for our apps; the rest is the peer's."""
WARM = 0.3
"""Of a contestant's time: what is bounded fills up, and the JVM compiles what it runs often."""
SAMPLES = 60
LEAST_S = 1.0
"""Between two samples."""
LOOK_S = 0.2
KEPT = 32
"""Reports, so that memory is filled with them long before it is measured."""
ROWS_S, KEYS = 100, 64
WINDOW, LATE = "10 seconds", "5 seconds"
UNITS = {"driver_mb": "MB", "descriptors": "descriptors", "threads": "threads", "files": "files"}
LINES: dict[str, Callable[[Vitals], float]] = {
    "Python, MB": lambda v: v.python_mb,
    "JVM heap, MB": lambda v: v.jvm_mb,
    "descriptors": lambda v: v.descriptors,
    "threads": lambda v: v.threads,
    "files": lambda v: v.files,
}


@dataclass(frozen=True)
class Soaked:
    """How one contestant fared."""

    seconds: float
    vitals: tuple[Vitals, ...]
    epochs: tuple[tuple[float, float], ...]
    """Since the start: when an epoch of the counting ended, and how long it took."""

    @classmethod
    def of(cls, seconds: float, sampler: Sampler, epochs: Iterable[tuple[float, float]]) -> "Soaked":
        """With epochs, each as when it ended by the sampler's clock, and how many seconds it took."""
        since = [(ended_s - sampler.began_s, took_s) for ended_s, took_s in epochs if ended_s > sampler.began_s]
        return cls(seconds, tuple(sampler.samples), tuple(since))

    @property
    def warm_s(self) -> float:
        return self.seconds * WARM

    def slopes(self) -> dict[str, float]:
        """By figure: how much more there is each hour, after the warm-up."""
        return {
            "driver_mb_per_hour": per_hour(self.vitals, lambda v: v.python_mb + v.jvm_mb, self.warm_s),
            "python_mb_per_hour": per_hour(self.vitals, lambda v: v.python_mb, self.warm_s),
            "jvm_mb_per_hour": per_hour(self.vitals, lambda v: v.jvm_mb, self.warm_s),
            "descriptors_per_hour": per_hour(self.vitals, lambda v: v.descriptors, self.warm_s),
            "threads_per_hour": per_hour(self.vitals, lambda v: v.threads, self.warm_s),
            "files_per_hour": per_hour(self.vitals, lambda v: v.files, self.warm_s),
        }

    def last_over_first(self) -> float:
        """The median epoch of the last third over that of the first, after the warm-up."""
        warm = [took for ended, took in self.epochs if ended >= self.warm_s]
        third = max(1, len(warm) // 3)
        return median(warm[-third:]) / median(warm[:third]) if warm else 1.0


@dataclass(frozen=True)
class SoakBench:
    minutes: float = 20.0

    def run(self) -> Findings:
        seconds = self.minutes * 60
        with arena("soak") as place:
            found = {
                "springtide": _turn(place, "springtide", soak_apps, seconds * SHARE),
                "spark": _turn(place, "spark", soak_spark, seconds * (1 - SHARE)),
            }
        return findings(found, self.minutes)


def _turn(place: Arena, name: str, soak: Callable[[Path, float], Soaked], seconds: float) -> Soaked:
    found = place.call(name, soak, place.scratch / name, seconds)
    place.leave(name)
    return found


def soak_apps(directory: Path, seconds: float) -> Soaked:
    """Fifteen keyed steps, and windows, on one Spark. Runs in a process of its own."""
    spark = _session(directory)
    epochs: list[tuple[float, float]] = []

    def ended(report: EpochReport) -> None:
        epochs.append((time.monotonic(), report.phases.total_s))

    counting = build(GRID, sink=sinks.noop(), rate=ROWS_S, service_s=0.0, keys=KEYS)
    windows = App("windows")
    keyed = windows.source("rows", sources.generator(ROWS_S, keys=KEYS)).key_by("key")
    keyed.window("due_time", WINDOW, late=LATE).aggregate("counts", n=agg.count()).sink("out", sinks.noop())
    running: list[Running] = []
    try:
        for app, listener in ((counting, ended), (windows, None)):
            place = {"checkpoint": str(directory / app.name), "local": str(directory / f"{app.name}-local")}
            running.append(app.start(spark, on_epoch=listener, keep_reports=KEPT, **place))  # type: ignore[arg-type]
        _wait(lambda: all(each.reports for each in running), lambda: all(each.active for each in running))
        with Sampler(spark, directory, _every_s(seconds), lambda: None) as sampler:
            _soak(seconds, lambda: all(each.active for each in running))
    finally:
        for each in running:
            each.stop()
        spark.stop()
    return Soaked.of(seconds, sampler, epochs)


def soak_spark(directory: Path, seconds: float) -> Soaked:
    """The same windows and one count by key, by Spark's own stateful queries. Runs in a process of its own."""
    spark = _session(directory)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", HDFS)
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    rows = spark.readStream.format("rate").option("rowsPerSecond", ROWS_S).load()
    rows = rows.selectExpr("timestamp", f"value % {KEYS} AS key")
    counted = rows.groupBy("key").agg(F.count("*").alias("n"))
    windowed = rows.withWatermark("timestamp", LATE).groupBy(F.window("timestamp", WINDOW), "key").agg(F.count("*"))
    queries: list[StreamingQuery] = []
    epochs: dict[int, tuple[float, float]] = {}

    def look() -> None:
        for progress in queries[0].recentProgress:
            took = progress["durationMs"].get("triggerExecution")
            if took is not None and "addBatch" in progress["durationMs"]:
                epochs.setdefault(progress["batchId"], (time.monotonic(), took / 1e3))

    try:
        for name, frame in (("count", counted), ("windows", windowed)):
            writer = frame.writeStream.format("noop").outputMode("update")
            queries.append(writer.option("checkpointLocation", str(directory / name)).start())
        _wait(lambda: all(q.lastProgress is not None for q in queries), lambda: all(q.isActive for q in queries))
        with Sampler(spark, directory, _every_s(seconds), look) as sampler:
            _soak(seconds, lambda: all(q.isActive for q in queries))
    finally:
        for query in queries:
            query.stop()
        spark.stop()
    return Soaked.of(seconds, sampler, epochs.values())


def _session(directory: Path) -> SparkSession:
    """Spark, with its own files in the directory whose files are counted."""
    return make_session("soak", SessionConfig(settings={"spark.local.dir": str(directory / "spark-files")}))


def _every_s(seconds: float) -> float:
    return max(LEAST_S, seconds / SAMPLES)


def _soak(seconds: float, alive: Callable[[], bool]) -> None:
    """Let time pass."""
    until_s = time.monotonic() + seconds
    _wait(lambda: time.monotonic() >= until_s, alive)


def _wait(over: Callable[[], bool], alive: Callable[[], bool]) -> None:
    """RuntimeError if a contestant ends before that."""
    while not over():
        if not alive():
            raise RuntimeError("a contestant ended early")
        time.sleep(LOOK_S)


def findings(found: dict[str, Soaked], minutes: float) -> Findings:
    """The figures are ours; the peer's have its name before them."""
    figures: dict[str, Figure] = {}
    for name, soaked in found.items():
        prefix = "" if name == "springtide" else f"{name}_"
        figures |= {f"{prefix}{figure}": rounded(slope) for figure, slope in soaked.slopes().items()}
        figures[f"{prefix}epoch_p50_last_over_first"] = rounded(soaked.last_over_first())
        figures[f"{prefix}epochs"] = len(soaked.epochs)
    figures["minutes"] = minutes
    rows = [
        [name, *(f"{rounded(s.slopes()[f'{unit}_per_hour'])}" for unit in UNITS), f"{s.last_over_first():.2f}"]
        for name, s in found.items()
    ]
    headers = ["contestant", *(f"{unit} an hour" for unit in UNITS.values()), "last epochs over first"]
    return Findings("soak", headers, rows, figures, lambda axes: draw(axes, found["springtide"]))


def draw(axes: Any, soaked: Soaked) -> None:
    """Everything over its median after the warm-up: a line that stays at 1 is flat."""
    measured = [v for v in soaked.vitals if v.at_s >= soaked.warm_s]
    times = [v.at_s / 60 for v in soaked.vitals]
    for label, of in LINES.items():
        base = median(map(of, measured)) or 1.0
        axes.plot(times, [of(v) / base for v in soaked.vitals], label=f"{label} ({of(measured[-1]):,.0f})")
    usual_s = median(took for _, took in soaked.epochs) if soaked.epochs else 1.0
    ends, took = [at / 60 for at, _ in soaked.epochs], [took / usual_s for _, took in soaked.epochs]
    axes.plot(ends, took, ".", alpha=0.3, label=f"epoch ({usual_s:.2f} s)")
    axes.axvspan(0, soaked.warm_s / 60, alpha=0.12, color="tab:gray", label="warm-up")
    axes.set(title="What a driver takes as time goes on", xlabel="min", ylabel="over its median", ylim=(0, 2))
    axes.legend(loc="lower right", ncols=2)
