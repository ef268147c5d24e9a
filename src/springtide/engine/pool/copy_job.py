"""The Spark job that copies slices from worker to worker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from springtide import codec
from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.job_watch import JobWatch
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.copy import CARGO, TARGET, Copied, Errand, ReadSlices, WriteParts
from springtide.engine.worker.open_state import Parts
from springtide.engine.worker.task_context import Storage
from springtide.ids import WorkerId

JOB_BYTES = 2 << 20
"""A job of copies is over before it can hold up an epoch for long."""


@dataclass(frozen=True)
class CopyJob:
    """Placed tasks read, a shuffle carries, placed tasks write."""

    spark: SparkSession
    cluster: Cluster
    storage: Storage
    slices: int
    watch: JobWatch

    def run(self, errands: Sequence[Errand], parts: Mapping[WorkerId, Parts]) -> Copied:
        """Copy, in as many jobs as leave an epoch room."""
        return sum((self._job(load, parts) for load in loads(errands)), Copied())

    def _job(self, every: tuple[Errand, ...], parts: Mapping[WorkerId, Parts]) -> Copied:
        sources = tuple(dict.fromkeys(e.source for e in every))
        targets = tuple(dict.fromkeys(e.target for e in every))
        read = ReadSlices(every, sources, targets, self.slices, self.storage, parts)
        numbers = self.spark.range(0, len(sources), 1, len(sources))
        cargo = self.cluster.place(numbers, sources).mapInArrow(read, CARGO)
        arrived = self.cluster.place(cargo.repartitionById(len(targets), TARGET), targets)
        with self.watch.job("app", "copying state between workers"):
            rows = arrived.mapInArrow(WriteParts(every, self.storage), RECORD).collect()
        return sum((codec.loads(Copied, row.record) for row in rows), Copied())


def loads(errands: Sequence[Errand]) -> list[tuple[Errand, ...]]:
    """Errands in jobs of not too many bytes; a large one has a job for itself, and so one worker at a time is busy."""
    found: list[list[Errand]] = []
    left = 0
    for errand in sorted(errands, key=lambda e: (e.source, e.target)):
        size = errand.run.size_bytes * len(errand.slices) // max(1, len(errand.run.slices))
        if not found or size > left:
            found.append([])
            left = JOB_BYTES
        found[-1].append(errand)
        left -= size
    return [tuple(load) for load in found]
