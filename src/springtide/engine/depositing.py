"""The Spark job that makes states durable."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from springtide.blocks.block import BlockRef, parse_slices
from springtide.blocks.manifest import States
from springtide.engine.pools import COPIES, use
from springtide.engine.record import RECORD
from springtide.engine.staff import Staff
from springtide.engine.worker.deposit import Deposit, StoreRuns


@dataclass(frozen=True)
class Depositing:
    """Placed tasks store what is on their workers."""

    spark: SparkSession
    staff: Staff

    def __call__(self, states: Sequence[States], stored: Set[str]) -> list[States] | None:
        """The states with durable runs only; None if some are not where they should be."""
        use(self.spark.sparkContext, COPIES)
        deposits = list(dict.fromkeys(d for each in states for d in self.staff.deposits(each, stored)))
        durable = whole(deposits, self._job(deposits) if deposits else {})
        return None if durable is None else [with_deposits(each, durable) for each in states]

    def _job(self, deposits: Sequence[Deposit]) -> dict[int, list[BlockRef]]:
        workers = tuple(dict.fromkeys(d.worker for d in deposits))
        task = StoreRuns(tuple(deposits), workers, self.staff.storage, self.staff.parts())
        numbers = self.spark.range(0, len(workers), 1, len(workers))
        with self.staff.watch.job("app", "making its state durable"):
            rows = self.staff.place(numbers, workers).mapInArrow(task, RECORD).collect()
        found = [json.loads(row.record) for row in rows]
        return {number: [BlockRef.from_json(ref) for ref in refs] for number, refs in found}


def whole(
    deposits: Sequence[Deposit], stored: Mapping[int, Sequence[BlockRef]]
) -> dict[BlockRef, list[BlockRef]] | None:
    """The blocks that stand for each run now, given those for each deposit; None if they do not cover one."""
    found: dict[BlockRef, list[BlockRef]] = defaultdict(list)
    for number, deposit in enumerate(deposits):
        refs = stored.get(number, ())
        if deposit.slices - frozenset().union(*(parse_slices(ref.slices) for ref in refs)):
            return None
        found[deposit.run] += refs
    return found


def with_deposits(states: States, durable: Mapping[BlockRef, Sequence[BlockRef]]) -> States:
    """States in which stored blocks stand in the place of runs: of the same run, one may have fewer slices."""
    return {
        step: replace(state, runs=tuple(ref for run in state.runs for ref in durable.get(run, [run])))
        for step, state in states.items()
    }
