"""A keyed step's job in an epoch: one shuffle, one update, one commit record an instance."""

import time
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import OperatorState
from springtide.dataflow.graph import Keyed
from springtide.engine.failure import explain
from springtide.engine.frames import EpochFrames
from springtide.engine.record import RECORD, CommitRecord, MapStats
from springtide.engine.worker.parcel import INSTANCE, PARCEL
from springtide.engine.worker.prepare import HASH, Prepare
from springtide.engine.worker.rows import Capture
from springtide.engine.worker.task import Storage
from springtide.engine.worker.update import Update
from springtide.ids import Epoch, InstanceId, SliceId
from springtide.metrics.report import OperatorReport
from springtide.plan.plan import Plan
from springtide.state.logic import BEGINNING_US, Moment


@dataclass(frozen=True)
class Setting:
    """What all steps of an epoch share."""

    app: str
    epoch: Epoch
    plan: Plan
    storage: Storage
    forget: tuple[str, ...]
    """Blocks whose local copies nobody needs any more."""


def run_keyed(
    node: Keyed, frames: EpochFrames, state: OperatorState, setting: Setting, *, few_rows: bool
) -> tuple[OperatorState, tuple[BlockRef, ...], OperatorReport]:
    """Update a keyed step; returns its state after the epoch, its output blocks and its report.

    `few_rows` is a guess that chooses the cheaper way through the shuffle; both give the same result.
    """
    start = time.perf_counter()
    logic = frames.bound.logics[node.name]
    rows = frames.bound.input_of(node.name)
    share = setting.plan.operators[node.name]
    moment = _moment(state, logic.late_us)
    source = frames.input_of(node.name)
    prepare = Prepare(node.name, logic, node.key, rows, share.instance_of, moment)
    update = Update(
        node.name, logic, setting.epoch, setting.storage, share.instance_of, state.runs, moment, setting.forget
    )
    if few_rows:
        # One Python task less for each partition; with many rows, preparing them before the shuffle pays.
        hashed = _with_hash(source, node.key, rows, _instance_of(share.instance_of))
        update = replace(update, prepare=prepare)
    elif [rows.field(name).type for name in node.key] == [pa.int64()]:
        hashed = source.selectExpr(*map(_quoted, rows.names)).mapInArrow(prepare, PARCEL)
    else:
        hashed = _with_hash(source, node.key, rows).mapInArrow(prepare, PARCEL)
    job = hashed.repartitionById(share.instances, INSTANCE).mapInArrow(update, RECORD)
    records = _collect(job, node.name, setting)
    stats = sum((r.stats for r in records), MapStats())
    owned = [frozenset(share.slices_of(InstanceId(r.instance))) for r in records]
    after = _advance(state, records, moment, stats, owned)
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
        None if logic.late_us is None or moment.watermark_us == BEGINNING_US else moment.watermark_us,
        time.perf_counter() - start,
        tuple(r.report for r in records),
    )
    return after, output, report


def run_capture(
    step: str, frames: EpochFrames, setting: Setting
) -> tuple[tuple[BlockRef, ...], OperatorReport]:
    """Store the rows of a stateless step, so that its sinks can publish them after the commit."""
    start = time.perf_counter()
    capture = Capture(step, setting.epoch, setting.storage, frames.bound.schemas[step])
    records = _collect(frames.rows_of(step).mapInArrow(capture, RECORD), step, setting)
    rows = sum(r.stats.rows_in for r in records)
    report = OperatorReport(
        step, rows, rows, job_s=time.perf_counter() - start, instances=tuple(r.report for r in records)
    )
    return tuple(r.output for r in records if r.output is not None), report


def _moment(state: OperatorState, late_us: int | None) -> Moment:
    """Event time at the start of an epoch: what earlier epochs have shown."""
    if late_us is None or state.newest_us is None:
        return Moment()
    before = BEGINNING_US if state.watermark_us is None else state.watermark_us
    return Moment(max(before, state.newest_us - late_us), before)


def _advance(
    state: OperatorState,
    records: list[CommitRecord],
    moment: Moment,
    stats: MapStats,
    owned: list[frozenset[SliceId]],
) -> OperatorState:
    keys = state.keys + sum(r.keys_added - r.keys_removed for r in records)
    newest = max(stats.newest_us, BEGINNING_US if state.newest_us is None else state.newest_us)
    after = replace(
        state,
        keys=keys,
        newest_us=None if newest == BEGINNING_US else newest,
        watermark_us=None if moment.watermark_us == BEGINNING_US else moment.watermark_us,
    )
    for record, slices in zip(records, owned, strict=True):
        after = after.replaced(slices, frozenset(record.replaced), record.run)
    return after


def _with_hash(frame: DataFrame, key: tuple[str, ...], rows: pa.Schema, *more: str) -> DataFrame:
    """The step's input with the hash of its key; zero has one hash, whatever its sign.

    Expressions as text cross into the JVM in one call; columns would take one each.
    """
    hashed = []
    for name in key:
        kind = {pa.float32(): "float", pa.float64(): "double"}.get(rows.field(name).type)
        hashed.append(_quoted(name) if kind is None else f"if({_quoted(name)} = 0, {kind}(0), {_quoted(name)})")
    with_hash = frame.selectExpr(f"xxhash64({', '.join(hashed)}) AS `{HASH}`", *map(_quoted, rows.names))
    return with_hash.selectExpr("*", *more) if more else with_hash


def _instance_of(owners: tuple[InstanceId, ...]) -> str:
    """The instance of a row, from its hash: one case for each arc of slices with the same owner."""
    ends = [s for s in range(1, len(owners) + 1) if s == len(owners) or owners[s] != owners[s - 1]]
    cases = " ".join(f"WHEN `{HASH}` & {len(owners) - 1} < {end} THEN {owners[end - 1]}" for end in ends)
    return f"CASE {cases} END AS {INSTANCE}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _collect(job: DataFrame, step: str, setting: Setting) -> list[CommitRecord]:
    """Run a job; Spark returns the record of exactly one attempt for each partition."""
    job.sparkSession.sparkContext.setJobDescription(f"{setting.app}, epoch {setting.epoch}: {step}")
    try:
        found = job.collect()
    except Exception as error:
        raise explain(error, step) from error
    return [CommitRecord.from_json(row.record) for row in found]
