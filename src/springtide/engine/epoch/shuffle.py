"""The way of a keyed step's rows to its instances: all give the same result, and differ in what they cost."""

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from springtide.blocks.block import BlockRef
from springtide.dataflow.graph import Keyed
from springtide.engine.epoch.build_step import quoted
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.parcel import INSTANCE, PARCEL
from springtide.engine.worker.prepare import HASH, PrepareRows
from springtide.engine.worker.update import Update
from springtide.ids import InstanceId
from springtide.plan.plan import OperatorPlan


@dataclass(frozen=True)
class RowShuffle:
    """From a step's rows to the records of its instances, as one job."""

    frames: EpochDataFrames
    pool: ExecutorPool
    share: OperatorPlan
    prepare: PrepareRows
    update: Update

    def __call__(self, node: Keyed, *, few_rows: bool) -> DataFrame:
        """`few_rows` is a guess that chooses the cheaper way."""
        written = self.frames.written_for(node.name) if self._hashes_itself else ()
        if written:
            return self._from_blocks(written, few_rows=few_rows)
        rows = self.frames.input_of(node.name)
        if self.frames.bound.graph.reads_sources(node.name):  # What a keyed step has written is read where it lies.
            rows = self.pool.spread(rows)
        if few_rows and not self.share.replicas and not self.prepare.traffic:
            # One Python task less for each partition; with many rows, preparing them before the shuffle pays.
            addressed = self._with_hash(rows, _instance_of(self.share.instance_of))
            return self._shuffled(addressed, replace(self.update, prepare=self.prepare))
        columns = map(quoted, self.prepare.rows.names)
        ready = rows.selectExpr(*columns) if self._hashes_itself else self._with_hash(rows)
        return self._shuffled(ready.mapInArrow(self.prepare, PARCEL))

    def _from_blocks(self, written: tuple[BlockRef, ...], *, few_rows: bool) -> DataFrame:
        """Blocks are read by the very task that prepares their rows; or updates them, if all are for its instance."""
        parts = self.frames.parts(written, by_worker=few_rows)
        numbers, read = self.frames.read(parts, self.prepare.rows)
        prepare = replace(self.prepare, written=read)
        if [part.worker for part in parts] == [*self.share.worker_of] and len(parts) == 1 and not self.share.replicas:
            return numbers.mapInArrow(replace(self.update, prepare=prepare), RECORD)
        return self._shuffled(numbers.mapInArrow(prepare, PARCEL))

    def _shuffled(self, addressed: DataFrame, update: Update | None = None) -> DataFrame:
        by_instance = addressed.repartitionById(self.share.instances, INSTANCE)
        return self.pool.place(by_instance, self.share.worker_of).mapInArrow(update or self.update, RECORD)

    @property
    def _hashes_itself(self) -> bool:
        """Whether Python can hash the key as Spark does."""
        return [self.prepare.rows.field(name).type for name in self.prepare.key] == [pa.int64()]

    def _with_hash(self, frame: DataFrame, *more: str) -> DataFrame:
        """The step's input with the hash of its key; zero has one hash, whatever its sign.

        Expressions as text cross into the JVM in one call; columns would take one each.
        """
        rows, hashed = self.prepare.rows, []
        for name in self.prepare.key:
            kind = {pa.float32(): "float", pa.float64(): "double"}.get(rows.field(name).type)
            hashed.append(quoted(name) if kind is None else f"if({quoted(name)} = 0, {kind}(0), {quoted(name)})")
        with_hash = frame.selectExpr(f"xxhash64({', '.join(hashed)}) AS `{HASH}`", *map(quoted, rows.names))
        return with_hash.selectExpr("*", *more) if more else with_hash


def _instance_of(owners: tuple[InstanceId, ...]) -> str:
    """The instance of a row, from its hash: one case for each arc of slices with the same owner."""
    ends = [s for s in range(1, len(owners) + 1) if s == len(owners) or owners[s] != owners[s - 1]]
    cases = " ".join(f"WHEN `{HASH}` & {len(owners) - 1} < {end} THEN {owners[end - 1]}" for end in ends)
    return f"CASE {cases} END AS {INSTANCE}"
