"""Where the state is: merge an instance's parcels into its slices."""

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from springtide import codec, faults
from springtide.blocks.block import BACKUP, OUTPUT, PENDING, RUN, BlockRef
from springtide.blocks.local import LocalBlocks
from springtide.blocks.slice_set import SliceSet
from springtide.engine.wire.commit_record import CommitRecord, MapStats
from springtide.engine.wire.stopwatch import Stopwatch
from springtide.engine.worker.cleanup import Housekeeping
from springtide.engine.worker.open_state import Behind, Missing, Opening, Parts
from springtide.engine.worker.parcel import Received, unpack
from springtide.engine.worker.prepare import PrepareRows
from springtide.engine.worker.task_context import Storage, here, host_report, naming, partition, resident_bytes, settle
from springtide.ids import Epoch, InstanceId, WorkerId
from springtide.metrics.report import InstanceReport
from springtide.plan.plan import OperatorPlan
from springtide.state.chain import Chain
from springtide.state.layout import DEAD, EXPIRES, Layout
from springtide.state.logic import BEGINNING_US, Logic, Moment
from springtide.state.update import catch_up, update


@dataclass(frozen=True)
class Update:
    """Merge an instance's rows into its state, and report what was written.

    Rows come in parcels, prepared where they were read; or as they are, or from blocks, to be prepared here. A task
    that finds itself on another worker than planned, or without the state it needs, says so and does nothing.
    """

    step: str
    logic: Logic
    epoch: Epoch
    storage: Storage
    plan: OperatorPlan
    chain: tuple[BlockRef, ...]
    moment: Moment
    housekeeping: Housekeeping
    prepare: PrepareRows | None = None
    """How to prepare rows that come as they are; None if they come in parcels."""
    behind: tuple[Behind, ...] = ()
    """Slices that a new owner takes over from an older state."""
    parts: Mapping[WorkerId, Parts] = field(default_factory=dict)
    """What workers that stand by hold of other workers' runs."""
    read_durable: bool = True
    """May read state from the durable store; else what is not here is reported."""
    write_durable: bool = True
    """New state goes to the durable store at once; else to this worker alone."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        instance = InstanceId(partition())
        planned = self.plan.worker_of[instance]
        if self.storage.clustered and here() != planned:
            yield _batch(CommitRecord(instance, astray=here() or "?"))
            return
        watch, cpu = Stopwatch(), time.process_time()
        blocks = self.storage.open()
        self.housekeeping(self.storage, blocks)
        with watch.part("idle"):
            received = list(batches)
        with watch.part("deserialise"):
            rows = self._received(received)
            opening = Opening(blocks, self.logic.layout, len(self.plan.instance_of), self.parts.get(planned, {}))
            opening.durable = self.read_durable
            mine = frozenset(self.plan.slices_of(instance)) - self.plan.stalled
            arrivals, stalled = opening.parted(rows.arrivals, self.plan.stalled)
            behind = [b for b in self.behind if b.worker == planned and b.slices & mine]
            current = mine.difference(*(b.slices for b in behind))
            try:
                runs = opening.runs(self.chain, current)
                older = [(opening.runs(b.chain, b.slices & mine), opening.missed(b, mine)) for b in behind]
            except Missing as missing:
                yield _batch(CommitRecord(instance, missing=SliceSet.of(missing.slices)))
                return
        faults.fire("update.begun", self.epoch)
        with watch.part("process"), naming(self.step, "updating its state"):
            caught_up = [catch_up(self.logic, Chain(old, self.logic.layout), missed) for old, missed in older]
            owed = [c for c, b in zip(caught_up, behind, strict=True) if b.owed]
            chain = Chain([*runs, *(run for old, _ in older for run in old)], self.logic.layout)
            on_top = [c.run for c in caught_up if c.run is not None]
            updated = update(self.logic, chain, arrivals, self.moment, loose=on_top)
            results = pa.concat_tables([*(table for c in owed for table in c.output), updated.output])
        # All wait for the disk, so they wait together.
        with watch.part("serialise"), naming(self.step, "writing its blocks"), ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self._write_run, blocks, updated.run, instance)
            output = self._write(blocks, results, instance, OUTPUT)
            pending = self._write_all(blocks, stalled, instance, PENDING)
            backup = self._write_all(blocks, rows.backup, instance, BACKUP, durable=False)
            run = writing.result()
        faults.fire("block.written", self.epoch)
        report = InstanceReport(
            instance,
            sum(a.num_rows for a in rows.arrivals),
            results.num_rows,
            watch["idle"],
            watch["deserialise"],
            watch["process"],
            watch["serialise"],
            time.process_time() - cpu,
            resident_bytes(),
            planned,
            opening.census(rows.arrivals),
            host_report(),
        )
        due_us = None
        if not any(rows.num_rows for rows in arrivals) and not self.plan.stalled:
            due_us = updated.next_expiry_us(chain, self.moment)
        replaced = tuple(opening.counted[run.name] for run in updated.replaced)
        added = updated.keys_added + sum(c.keys_added for c in owed)
        removed = updated.keys_removed + sum(c.keys_removed for c in owed)
        record = CommitRecord(
            instance,
            run,
            replaced,
            output,
            backup,
            pending,
            added,
            removed,
            opening.durable_reads,
            due_us,
            rows.stats,
            report,
        )
        yield _batch(record)

    def _received(self, batches: list[pa.RecordBatch]) -> Received:
        if self.prepare is None:
            return unpack(batches)
        found = list(self.prepare.arrivals(batches))
        return Received(sum((ready.stats for ready in found), MapStats()), [ready.rows for ready in found], [])

    def _write_run(self, blocks: LocalBlocks, rows: pa.Table | None, instance: InstanceId) -> BlockRef | None:
        if rows is None or not rows.num_rows:
            return None
        mine = frozenset(self.plan.slices_of(instance)) - self.plan.stalled
        return blocks.write(
            rows,
            operator=self.step,
            epoch=self.epoch,
            instance=instance,
            kind=RUN,
            slices=SliceSet.of(mine),
            expires_us=_expiry_range(rows, self.logic.layout),
            durable=self.write_durable,
        )

    def _write_all(
        self, blocks: LocalBlocks, tables: list[pa.Table], instance: InstanceId, kind: str, *, durable: bool = True
    ) -> BlockRef | None:
        if not tables:
            return None
        return self._write(blocks, pa.concat_tables(tables), instance, kind, durable=durable)

    def _write(
        self, blocks: LocalBlocks, rows: pa.Table, instance: InstanceId, kind: str, *, durable: bool = True
    ) -> BlockRef | None:
        if not rows.num_rows:
            return None
        return blocks.write(rows, operator=self.step, epoch=self.epoch, instance=instance, kind=kind, durable=durable)


def _batch(record: CommitRecord) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"record": [codec.dumps(record)]})


def _expiry_range(rows: pa.Table, layout: Layout) -> tuple[int, int] | None:
    if not layout.expires:
        return None
    values = rows.column(EXPIRES).to_numpy()[~rows.column(DEAD).to_numpy()]
    return (int(values.min()), int(values.max())) if len(values) else (BEGINNING_US, BEGINNING_US)
