"""The Spark job that makes states durable."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from springtide import codec
from springtide.blocks.block import BlockRef
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.manifest import States
from springtide.engine.executors.scheduler_pools import COPIES, use
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.fault import corrupt
from springtide.engine.worker.store import Deposit, Stored, StoreRuns
from springtide.ids import SliceId
from springtide.logs import room_logger

log = room_logger(__name__)


@dataclass(frozen=True)
class StoreJob:
    """Placed tasks store what is on their workers.

    What one worker has lost, or has with the wrong bytes, another that has a copy is asked for.
    """

    spark: SparkSession
    pool: ExecutorPool

    def __call__(self, states: Sequence[States], stored: Set[str]) -> list[States] | None:
        """The states with durable runs only; None if some are not where they should be."""
        use(self.spark.sparkContext, COPIES)
        while True:
            deposits = list(dict.fromkeys(d for each in states for d in self.pool.state.deposits(each, stored)))
            done = self._job(deposits) if deposits else {}
            faults = [fault for one in done.values() for fault in one.faults]
            for fault in faults:
                log.warning("a durable checkpoint: %s", fault)
            news = self.pool.state.unsound(faults)
            durable = whole(deposits, {number: one.refs for number, one in done.items()})
            if durable is not None:
                return [with_deposits(each, durable) for each in states]
            if not news:
                for error in missing(deposits, done):
                    log.warning("a durable checkpoint was given up: %s", error)
                return None

    def _job(self, deposits: Sequence[Deposit]) -> dict[int, Stored]:
        workers = tuple(dict.fromkeys(d.worker for d in deposits))
        task = StoreRuns(tuple(deposits), workers, self.pool.storage, self.pool.state.parts())
        numbers = self.spark.range(0, len(workers), 1, len(workers))
        with self.pool.watch.job("app", "making its state durable"):
            rows = self.pool.place(numbers, workers).mapInArrow(task, RECORD).collect()
        return dict(codec.loads(tuple[int, Stored], row.record) for row in rows)


def whole(
    deposits: Sequence[Deposit], stored: Mapping[int, Sequence[BlockRef]]
) -> dict[BlockRef, list[BlockRef]] | None:
    """The blocks that stand for each run now, given those for each deposit; None if they do not cover one."""
    found: dict[BlockRef, list[BlockRef]] = defaultdict(list)
    for number, deposit in enumerate(deposits):
        refs = stored.get(number, ())
        if lacking(deposit, refs):
            return None
        found[deposit.run] += refs
    return found


def lacking(deposit: Deposit, refs: Iterable[BlockRef]) -> frozenset[SliceId]:
    """The slices of a deposit that no stored block stands for."""
    return deposit.slices.difference(*(ref.slices for ref in refs))


def missing(deposits: Sequence[Deposit], done: Mapping[int, Stored]) -> list[BlockCorrupt]:
    """What is wrong with the deposits that are not whole."""
    results = [(deposit, done.get(number, Stored())) for number, deposit in enumerate(deposits)]
    return [corrupt(deposit.run, stored.faults) for deposit, stored in results if lacking(deposit, stored.refs)]


def with_deposits(states: States, durable: Mapping[BlockRef, Sequence[BlockRef]]) -> States:
    """States in which stored blocks stand in the place of runs: of the same run, one may have fewer slices."""
    return {
        step: replace(state, runs=tuple(ref for run in state.runs for ref in durable.get(run, [run])))
        for step, state in states.items()
    }
