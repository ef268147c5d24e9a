"""Rows that need no state: stored, mapped by a user's function, handed to a sink."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from springtide import codec, faults
from springtide.blocks.block import OUTPUT
from springtide.engine.wire.commit_record import CommitRecord, MapStats
from springtide.engine.wire.stopwatch import Stopwatch
from springtide.engine.worker.prepare import FIRST_ROWS_S
from springtide.engine.worker.task_context import Storage, here, naming, partition, resident_bytes, table_of
from springtide.ids import Epoch, InstanceId
from springtide.metrics.report import InstanceReport
from springtide.state.lateness import Lateness
from springtide.state.logic import Moment


@dataclass(frozen=True)
class Capture:
    """Store rows that no keyed step produced, so that a sink can publish them after the commit."""

    step: str
    epoch: Epoch
    storage: Storage
    rows: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        instance = InstanceId(partition())
        watch, cpu, blocks = Stopwatch(), time.process_time(), self.storage.open()
        with watch.part("idle"):
            rows = table_of(list(batches), self.rows)
        output = None
        with watch.part("serialise"), naming(self.step, "writing its blocks"):
            if rows.num_rows:
                output = blocks.write(rows, operator=self.step, epoch=self.epoch, instance=instance, kind=OUTPUT)
        faults.fire("block.written", self.epoch)
        report = InstanceReport(
            instance,
            rows.num_rows,
            rows.num_rows,
            watch["idle"],
            serialise_s=watch["serialise"],
            cpu_s=time.process_time() - cpu,
            resident_bytes=resident_bytes(),
            worker=here(),
        )
        # Waiting for rows is reading them, and the stateless steps that make them: work of this step.
        stats = MapStats(rows.num_rows, busy_s=max(0.0, watch["idle"] - FIRST_ROWS_S))
        record = CommitRecord(instance, output=output, stats=stats, report=report)
        yield pa.RecordBatch.from_pydict({"record": [codec.dumps(record)]})


@dataclass(frozen=True)
class MapTable:
    """A user's function over each Arrow batch."""

    step: str
    function: Callable[[pa.Table], pa.Table]
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with naming(self.step, "calling its function"):
                result = self.function(pa.Table.from_batches([batch]))
                if not isinstance(result, pa.Table):
                    raise TypeError(f"expected the function to return a pyarrow.Table, got {type(result).__name__}")
                if set(result.column_names) != set(self.output.names):
                    raise ValueError(f"expected columns {self.output.names}, got {result.column_names}")
                rows = result.select(self.output.names).cast(self.output)
            yield from rows.to_batches()


@dataclass(frozen=True)
class LateRows:
    """The rows of an input that come too late for a keyed step, by the watermark that the step itself goes by."""

    step: str
    lateness: Lateness
    moment: Moment

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with naming(self.step, "telling which rows are late"):
                rows = pa.Table.from_batches([batch])
                late = rows.filter(pa.array(self.lateness.rows(rows, self.moment)))
            yield from late.to_batches()


@dataclass(frozen=True)
class EachPart:
    """Hand each partition that has rows to a sink's function, and tell which these are."""

    function: Callable[[int, pa.Table], None]
    rows: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = table_of(list(batches), self.rows)
        if rows.num_rows:
            self.function(partition(), rows)
            yield pa.RecordBatch.from_pydict({"record": [str(partition())]})
