"""What the processes of a driver take while it runs: memory, descriptors, threads, files. Sampled beside the epochs."""

import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from pyspark.sql import SparkSession

from springtide.bench.harness.watching import Watch
from springtide.engine.spark.internals import jvm_pid, live_heap_bytes


@dataclass(frozen=True)
class Vitals:
    """One sample, taken after both processes have collected their garbage."""

    at_s: float
    """Since the sampling began."""
    python_mb: float
    """Resident memory of the driver's Python process."""
    jvm_mb: float
    """What is alive in the heap of the driver's JVM. Its resident memory says less: it keeps what it has had once."""
    descriptors: int
    """Open ones of both processes."""
    threads: int
    """Of both processes."""
    files: int
    """In the checkpoint, the workers' directory and Spark's."""


class Sampler(Watch):
    """Samples the processes of this driver."""

    def __init__(self, spark: SparkSession, directory: Path, every_s: float, look: Callable[[], object]) -> None:
        """`look` is called with every sample, for what has to be polled."""
        super().__init__("vitals", every_s)
        self.samples: list[Vitals] = []
        self._spark, self._directory, self._look = spark, directory, look
        self._processes = (psutil.Process(), psutil.Process(jvm_pid(spark)))
        self.began_s = time.monotonic()

    def look(self) -> None:
        gc.collect()
        heap = live_heap_bytes(self._spark)
        self._look()
        self.samples.append(
            Vitals(
                time.monotonic() - self.began_s,
                self._processes[0].memory_info().rss / 1e6,
                heap / 1e6,
                sum(process.num_fds() for process in self._processes),
                sum(process.num_threads() for process in self._processes),
                count_files(self._directory),
            )
        )


def count_files(directory: Path) -> int:
    """The files in a directory and those below it, while others write and remove some."""
    return sum(len(names) for _, _, names in os.walk(directory))


def per_hour(samples: Sequence[Vitals], of: Callable[[Vitals], float], since_s: float) -> float:
    """How much more there is each hour: the median of the slopes between any two samples since a moment.

    A few samples that stand out, such as one that was taken while an epoch wrote, do not change it. 0 if there are
    too few.
    """
    found = [sample for sample in samples if sample.at_s >= since_s]
    times, values = np.array([s.at_s for s in found]), np.array([of(s) for s in found])
    early, late = np.triu_indices(len(found), k=1)
    if not len(early):
        return 0.0
    slopes: Any = (values[late] - values[early]) / (times[late] - times[early])
    return float(np.median(slopes)) * 3600.0
