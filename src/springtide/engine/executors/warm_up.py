"""Practice for new workers: a small epoch that leaves nothing behind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.parcel import INSTANCE, PARCEL, pack, parcel, unpack
from springtide.engine.worker.task_context import here, settle
from springtide.state import aggregates as agg
from springtide.state.aggregate import AggregateLogic
from springtide.state.chain import Chain
from springtide.state.logic import Logic, Moment
from springtide.state.run import Run
from springtide.state.update import update

ROWS = 5_000
SLICES = 2
SCHEMA = pa.schema([("key", pa.int64())])


def practice(spark: SparkSession, tasks: int, place: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """A job with a shuffle, a placed update in each of its tasks, and the worker's id as its result."""
    sent = spark.range(0, tasks, 1, tasks).mapInArrow(Send(tasks), PARCEL)
    return place(sent.repartitionById(tasks, INSTANCE)).mapInArrow(Receive(), RECORD)


def _logic() -> Logic:
    return AggregateLogic(SCHEMA, SCHEMA, {"n": agg.count()}, SLICES)


@dataclass(frozen=True)
class Send:
    """Some rows for every task."""

    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for _ in batches:
            keys = pa.array(np.arange(ROWS))
            positions = np.arange(ROWS, dtype=np.uint64) << np.uint64(48)
            arrival = _logic().arrive(positions, [keys], pa.table({"key": keys}).select([]), Moment())
            for task in range(self.tasks):
                yield parcel(task, None, pack(arrival.rows))


@dataclass(frozen=True)
class Receive:
    """Two epochs over what came, in memory."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import springtide.engine.worker.copy
        import springtide.engine.worker.update  # noqa: F401

        settle()
        logic = _logic()
        arrivals = unpack(list(batches)).arrivals
        first = update(logic, Chain([], logic.layout), arrivals, Moment())
        if first.run is not None:
            update(logic, Chain([Run(first.run, logic.layout, SLICES)], logic.layout), arrivals, Moment())
        yield pa.RecordBatch.from_pydict({"record": [here()]})
