"""Where the state is: merge an instance's parcels into its slices."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from springtide import faults
from springtide.blocks.block import OUTPUT, RUN, BlockRef, format_slices, parse_slices
from springtide.blocks.local import LocalBlocks
from springtide.engine.record import CommitRecord, MapStats
from springtide.engine.stopwatch import Stopwatch
from springtide.engine.worker.parcel import unpack
from springtide.engine.worker.prepare import Prepare
from springtide.engine.worker.task import Storage, naming, partition, resident_bytes, settle
from springtide.ids import Epoch, InstanceId
from springtide.metrics.report import InstanceReport
from springtide.state.chain import Chain
from springtide.state.layout import EXPIRES, Layout
from springtide.state.logic import Logic, Moment
from springtide.state.run import Run
from springtide.state.update import update


@dataclass(frozen=True)
class Update:
    """Merge an instance's rows into its state, and report what was written.

    Rows come in parcels, prepared where they were read; or as they are, to be prepared here.
    """

    step: str
    logic: Logic
    epoch: Epoch
    storage: Storage
    instance_of: tuple[InstanceId, ...]
    chain: tuple[BlockRef, ...]
    moment: Moment
    forget: tuple[str, ...]
    prepare: Prepare | None = None
    """How to prepare rows that come as they are; None if they come in parcels."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        instance = InstanceId(partition())
        watch, cpu = Stopwatch(), time.process_time()
        blocks = self.storage.open()
        blocks.forget(list(self.forget))
        with watch.part("idle"):
            received = list(batches)
        with watch.part("deserialise"):
            stats, arrivals = self._arrivals(received)
            mine = frozenset(s for s, owner in enumerate(self.instance_of) if owner == instance)
            concerned = [ref for ref in self.chain if parse_slices(ref.slices) & mine]
            chain = Chain([self._run(blocks, ref, mine) for ref in concerned], self.logic.layout)
        with watch.part("process"), naming(self.step, "updating its state"):
            updated = update(self.logic, chain, arrivals, self.moment)
        # Both wait for the disk, so they wait together.
        with watch.part("serialise"), ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self._write_run, blocks, updated.run, instance, mine)
            output = self._write_output(blocks, updated.output, instance)
            run = writing.result()
        faults.fire("block.written", self.epoch)
        report = InstanceReport(
            instance, sum(a.num_rows for a in arrivals), updated.output.num_rows, watch["idle"], watch["deserialise"],
            watch["process"], watch["serialise"], time.process_time() - cpu, resident_bytes(),
        )  # fmt: skip
        record = CommitRecord(
            instance, run, tuple(r.name for r in updated.replaced), output, updated.keys_added, updated.keys_removed,
            stats, report,
        )  # fmt: skip
        yield pa.RecordBatch.from_pydict({"record": [record.to_json()]})

    def _arrivals(self, received: list[pa.RecordBatch]) -> tuple[MapStats, list[pa.Table]]:
        if self.prepare is None:
            return unpack(received)
        found = list(self.prepare.arrivals(received))
        return sum((stats for stats, _ in found), MapStats()), [rows for _, rows in found]

    def _run(self, blocks: LocalBlocks, ref: BlockRef, mine: frozenset[int]) -> Run:
        counted = parse_slices(ref.slices)
        live = None
        if ref.partial or not counted <= mine:
            live = np.zeros(len(self.instance_of), np.bool_)
            live[list(counted & mine)] = True
        return Run(blocks.open(ref), self.logic.layout, len(self.instance_of), ref.name, live, ref.expires_us)

    def _write_run(
        self, blocks: LocalBlocks, rows: pa.Table | None, instance: InstanceId, mine: frozenset[int]
    ) -> BlockRef | None:
        if rows is None or not rows.num_rows:
            return None
        return blocks.write(
            rows, operator=self.step, epoch=self.epoch, instance=instance, kind=RUN,
            slices=format_slices(mine), expires_us=_expiry_range(rows, self.logic.layout),
        )  # fmt: skip

    def _write_output(self, blocks: LocalBlocks, rows: pa.Table, instance: InstanceId) -> BlockRef | None:
        if not rows.num_rows:
            return None
        return blocks.write(rows, operator=self.step, epoch=self.epoch, instance=instance, kind=OUTPUT)


def _expiry_range(rows: pa.Table, layout: Layout) -> tuple[int, int] | None:
    if not layout.expires:
        return None
    values = rows.column(EXPIRES).to_numpy()
    return int(values.min()), int(values.max())
