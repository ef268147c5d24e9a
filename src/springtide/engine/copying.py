"""The Spark job that copies slices from worker to worker."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from springtide.blocks.block import BlockRef
from springtide.engine.cluster import Cluster
from springtide.engine.record import RECORD
from springtide.engine.worker.copy import CARGO, TARGET, Errand, ReadSlices, WriteParts
from springtide.engine.worker.opening import Parts
from springtide.engine.worker.task import Storage
from springtide.ids import WorkerId


@dataclass(frozen=True)
class Copying:
    """Placed tasks read, a shuffle carries, placed tasks write."""

    spark: SparkSession
    cluster: Cluster
    storage: Storage
    slices: int

    def run(self, errands: Sequence[Errand], parts: Mapping[WorkerId, Parts]) -> list[tuple[str, BlockRef]]:
        """Copy; returns each part that was written, with the name of the run it is of."""
        if not errands:
            return []
        every = tuple(errands)
        sources = tuple(dict.fromkeys(e.source for e in every))
        targets = tuple(dict.fromkeys(e.target for e in every))
        read = ReadSlices(every, sources, targets, self.slices, self.storage, parts)
        numbers = self.spark.range(0, len(sources), 1, len(sources))
        cargo = self.cluster.place(numbers, sources).mapInArrow(read, CARGO)
        arrived = self.cluster.place(cargo.repartitionById(len(targets), TARGET), targets)
        rows = arrived.mapInArrow(WriteParts(every, self.storage), RECORD).collect()
        found = [json.loads(row.record) for row in rows]
        return [(name, BlockRef.from_json(fields)) for name, fields in found]
