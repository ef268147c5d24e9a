"""A keyed step's job in an epoch: one shuffle, one update, one commit record an instance."""

import time
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from springtide import codec
from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import OperatorState, Pending
from springtide.blocks.slice_set import SliceSet
from springtide.dataflow.graph import Graph, Keyed
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.epoch.event_time import after_epoch, watermark_of
from springtide.engine.epoch.shuffle import RowShuffle
from springtide.engine.executors.scheduler_pools import priority
from springtide.engine.ownership.standby import Backup, Kept
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.spark.internals import map_in_arrow
from springtide.engine.wire.commit_record import RECORD, CommitRecord, MapStats
from springtide.engine.wire.job_errors import explain
from springtide.engine.wire.retry_signals import Replan
from springtide.engine.worker.cleanup import Housekeeping
from springtide.engine.worker.prepare import PrepareRows
from springtide.engine.worker.stateless import Capture
from springtide.engine.worker.task_context import Storage
from springtide.engine.worker.update import Update
from springtide.ids import Epoch, InstanceId, SliceId, WorkerId
from springtide.metrics.report import OperatorReport
from springtide.plan.plan import OperatorPlan, Plan
from springtide.plan.routes import routes
from springtide.state.logic import Moment


@dataclass(frozen=True)
class Setting:
    """What all steps of an epoch share."""

    app: str
    epoch: Epoch
    plan: Plan
    storage: Storage
    housekeeping: Housekeeping
    pool: ExecutorPool
    read_durable: bool = True
    """State that is not on its worker may be read from the durable store."""
    write_durable: bool = True
    """New state goes to the durable store at once."""


@dataclass(frozen=True)
class Updated:
    """A keyed step after an epoch: its state, its output blocks, what is kept of it elsewhere, its report."""

    state: OperatorState
    output: tuple[BlockRef, ...]
    kept: Kept
    report: OperatorReport


def run_keyed(
    node: Keyed, frames: EpochDataFrames, state: OperatorState, setting: Setting, *, few_rows: bool
) -> Updated:
    """Update a keyed step. Raises Replan if the workers were not as planned.

    `few_rows` is a guess that chooses the cheaper way through the shuffle; both give the same result.
    """
    start = time.perf_counter()
    logic = frames.bound.logics[node.name]
    rows = frames.bound.input_of(node.name)
    share = setting.plan.operators[node.name]
    moment = replace(frames.moments[node.name], kept=_kept_of(node.name, frames))
    tell_traffic = setting.storage.clustered and not frames.bound.graph.reads_sources(node.name)
    behind = setting.pool.state.takeovers(node.name, state)
    for takeover in behind:
        state = state.rebased(takeover.slices, OperatorState(takeover.chain))
        state = state.settled(takeover.slices) if takeover.owed else state
    prepare = PrepareRows(node.name, logic, node.key, rows, setting.plan.slices, routes(share), moment, tell_traffic)
    update = Update(
        node.name,
        logic,
        setting.epoch,
        setting.storage,
        share,
        state.runs,
        moment,
        setting.housekeeping,
        behind=behind,
        parts=setting.pool.state.parts(),
        read_durable=setting.read_durable,
        write_durable=setting.write_durable,
    )
    job = RowShuffle(frames, setting.pool, share, prepare, update)(node, few_rows=few_rows)
    records = _collect(job, node.name, setting, frames.bound.graph)
    _check(records, node.name, share)
    stats = sum((r.stats for r in records), MapStats())
    after = _stalled(_advance(state, records, moment, stats), records, share, moment, setting.epoch)
    output = tuple(r.output for r in records if r.output is not None)
    report = OperatorReport(
        node.name,
        stats.rows_in,
        sum(r.report.rows_out for r in records),
        stats.late_rows,
        stats.malformed_rows,
        stats.busy_s,
        after.keys,
        sum(run.size_bytes for run in after.runs),
        len(after.runs),
        watermark_of(moment, logic.clock),
        time.perf_counter() - start,
        sum(r.durable_reads for r in records),
        sum(r.backup.size_bytes for r in records if r.backup is not None),
        tuple(r.report for r in records),
        stats.traffic,
        stats.hot_keys,
        ahead_rows=stats.ahead_rows,
    )
    return Updated(after, output, _kept(records, share, moment), report)


def _check(records: list[CommitRecord], step: str, share: OperatorPlan) -> None:
    astray = {share.worker_of[r.instance]: r.astray for r in records if r.astray}
    missing: dict[WorkerId, frozenset[SliceId]] = {}
    for record in records:
        if record.missing:
            worker = share.worker_of[record.instance]
            missing[worker] = missing.get(worker, frozenset()) | record.missing
    if astray or missing:
        raise Replan(step, astray, missing)


def _stalled(
    state: OperatorState, records: list[CommitRecord], share: OperatorPlan, moment: Moment, epoch: Epoch
) -> OperatorState:
    """The state with this epoch noted as one that stalled slices have still to see."""
    found = []
    for record in records:
        slices = share.stalled.intersection(share.slices_of(InstanceId(record.instance)))
        if slices:
            times = (moment.watermark_us, moment.previous_watermark_us)
            found.append(Pending(epoch, SliceSet.of(slices), *times, record.pending))
    return replace(state, pending=(*state.pending, *found))


def _kept(records: list[CommitRecord], share: OperatorPlan, moment: Moment) -> Kept:
    blocks = {share.worker_of[r.instance]: r.backup for r in records if r.backup is not None}
    standby = {worker: share.standby(worker) for worker in dict.fromkeys(share.worker_of)}
    return Kept(moment, {w: Backup(slices, blocks.get(w)) for w, slices in standby.items() if slices})


def run_capture(step: str, frames: EpochDataFrames, setting: Setting) -> tuple[tuple[BlockRef, ...], OperatorReport]:
    """Store the rows of a stateless step, so that its sinks can publish them after the commit."""
    start = time.perf_counter()
    capture = Capture(step, setting.epoch, setting.storage, frames.bound.schemas[step])
    rows = setting.pool.spread(frames.input_of(step))
    records = _collect(map_in_arrow(rows, capture, RECORD), step, setting, frames.bound.graph)
    stats = sum((r.stats for r in records), MapStats())
    report = OperatorReport(
        step,
        stats.rows_in,
        stats.rows_in,
        map_busy_s=stats.busy_s,
        job_s=time.perf_counter() - start,
        instances=tuple(r.report for r in records),
    )
    return tuple(r.output for r in records if r.output is not None), report


def _kept_of(step: str, frames: EpochDataFrames) -> float:
    """The share of the rows before a step that reaches it; where there are none, any will do."""
    producers = frames.bound.graph.feeders[step]
    return min(frames.shedding.share(producer, step) for producer in producers) or 1.0


def _advance(
    state: OperatorState,
    records: list[CommitRecord],
    moment: Moment,
    stats: MapStats,
) -> OperatorState:
    keys = state.keys + sum(r.keys_added - r.keys_removed for r in records)
    due = [record.due_us for record in records]
    due_us = None if None in due else min(d for d in due if d is not None)
    after = replace(after_epoch(state, moment, stats.newest_us, moment.now_us), keys=keys, due_us=due_us)
    for record in records:
        gone: dict[str, frozenset[SliceId]] = {}
        for name, slices in record.replaced:
            gone[name] = gone.get(name, frozenset()) | slices
        after = after.replaced(gone, record.run)
    return after


def _collect(job: DataFrame, step: str, setting: Setting, graph: Graph) -> list[CommitRecord]:
    """Run a job; Spark returns the record of exactly one attempt for each partition."""
    context = job.sparkSession.sparkContext
    context.setJobDescription(f"{setting.app}, epoch {setting.epoch}: {step}")
    try:
        with setting.pool.job(), setting.pool.watch.job(step), priority(context, graph.restrictions(step).priority):
            found = job.collect()
    except Exception as error:
        raise explain(error, step) from error
    return [codec.loads(CommitRecord, row.record) for row in found]
