"""The Spark job that makes a manifest's state durable."""

import json
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from springtide.blocks.block import BlockRef, parse_slices
from springtide.blocks.manifest import Manifest
from springtide.engine.pools import COPIES, use
from springtide.engine.record import RECORD
from springtide.engine.staff import Staff
from springtide.engine.worker.deposit import Deposit, StoreRuns


@dataclass(frozen=True)
class Depositing:
    """Placed tasks store what is on their workers."""

    spark: SparkSession
    staff: Staff

    def __call__(self, manifest: Manifest, stored: Set[str]) -> Manifest | None:
        """The manifest with durable runs only; None if some are not where they should be."""
        use(self.spark.sparkContext, COPIES)
        deposits = self.staff.deposits(manifest, stored)
        return with_deposits(manifest, deposits, self._job(deposits) if deposits else {})

    def _job(self, deposits: Sequence[Deposit]) -> dict[int, list[BlockRef]]:
        workers = tuple(dict.fromkeys(d.worker for d in deposits))
        task = StoreRuns(tuple(deposits), workers, self.staff.storage, self.staff.parts())
        numbers = self.spark.range(0, len(workers), 1, len(workers))
        rows = self.staff.place(numbers, workers).mapInArrow(task, RECORD).collect()
        found = [json.loads(row.record) for row in rows]
        return {number: [BlockRef.from_json(ref) for ref in refs] for number, refs in found}


def with_deposits(
    manifest: Manifest, deposits: Sequence[Deposit], stored: dict[int, list[BlockRef]]
) -> Manifest | None:
    """A manifest in which stored blocks stand in the place of its runs; None if they do not cover them."""
    instead: dict[str, list[BlockRef]] = defaultdict(list)
    for number, deposit in enumerate(deposits):
        refs = stored.get(number, [])
        if deposit.slices - frozenset().union(*(parse_slices(ref.slices) for ref in refs)):
            return None
        instead[deposit.run.name] += refs
    operators = {
        step: replace(state, runs=tuple(ref for run in state.runs for ref in instead.get(run.name, [run])))
        for step, state in manifest.operators.items()
    }
    return replace(manifest, operators=operators, durable=True)
