"""The way of a keyed step's rows to its instances: all give the same result, and differ in what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from springtide.blocks.block import BlockRef
from springtide.dataflow.graph import Keyed, Sides
from springtide.engine.epoch.dataframes import EpochDataFrames
from springtide.engine.epoch.sql import quoted
from springtide.engine.pool.protocol import ExecutorPool
from springtide.engine.spark.internals import by_number, in_batches, map_in_arrow, select
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.one_side import OneSide
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
        # One Python task less for each partition; with many rows, preparing them before the shuffle pays.
        unprepared = few_rows and not self.share.replicas and not self.prepare.traffic
        way = self.frames.bound.graph[node.parents[0]]
        if isinstance(way, Sides) and not unprepared:
            return self._shuffled(self._each_side(node, way))
        rows = self._spread(self.frames.input_of(node.name), node)
        if unprepared:
            addressed = self._with_hash(rows, _instance_of(self.share.instance_of))
            return self._shuffled(addressed, replace(self.update, prepare=self.prepare))
        columns = [quoted(name) for name in self.prepare.rows.names]
        ready = select(rows, columns) if self._hashes_itself else self._with_hash(rows)
        return self._shuffled(map_in_arrow(in_batches(ready), self.prepare, PARCEL))

    def _each_side(self, node: Keyed, way: Sides) -> DataFrame:
        """The parcels of all sides, each prepared by itself: Spark writes no columns of other sides for its rows."""
        parcels = []
        for number, rows in enumerate(self.frames.sides_of(node.name)):
            side = OneSide(number, self.prepare.rows)
            names = self.frames.bound.schemas[way.parents[number]].names
            key = [f"{quoted(name)} AS {quoted(place)}" for name, place in zip(way.keys[number], node.key, strict=True)]
            own = [quoted(name) for name in names if name not in way.keys[number]]
            # By place: a column of this side may have the name of the first side's key.
            own = [f"{name} AS `{place}`" for place, name in zip(side.places, own, strict=True)]
            hashed = [] if self._hashes_itself else [f"{self._hash(way.keys[number])} AS `{HASH}`"]
            ready = select(self._spread(rows, node), [*hashed, *key, *own])
            parcels.append(map_in_arrow(in_batches(ready), replace(self.prepare, side=side), PARCEL))
        return reduce(lambda some, more: some.union(more), parcels)

    def _spread(self, rows: DataFrame, node: Keyed) -> DataFrame:
        """What a keyed step has written is read where it lies."""
        return self.pool.spread(rows) if self.frames.bound.graph.reads_sources(node.name) else rows

    def _from_blocks(self, written: tuple[BlockRef, ...], *, few_rows: bool) -> DataFrame:
        """Blocks are read by the very task that prepares their rows; or updates them, if all are for its instance."""
        parts = self.frames.parts(written, by_worker=few_rows)
        numbers, read = self.frames.read(parts, self.prepare.rows)
        prepare = replace(self.prepare, written=read)
        if [part.worker for part in parts] == [*self.share.worker_of] and len(parts) == 1 and not self.share.replicas:
            return map_in_arrow(numbers, replace(self.update, prepare=prepare), RECORD)
        return self._shuffled(map_in_arrow(numbers, prepare, PARCEL))

    def _shuffled(self, addressed: DataFrame, update: Update | None = None) -> DataFrame:
        by_instance = by_number(addressed, self.share.instances, INSTANCE)
        return map_in_arrow(self.pool.place(by_instance, self.share.worker_of), update or self.update, RECORD)

    @property
    def _hashes_itself(self) -> bool:
        """Whether Python can hash the key as Spark does."""
        return [self.prepare.rows.field(name).type for name in self.prepare.key] == [pa.int64()]

    def _with_hash(self, frame: DataFrame, *more: str) -> DataFrame:
        """The step's input with the hash of its key."""
        names = map(quoted, self.prepare.rows.names)
        with_hash = select(frame, [f"{self._hash(self.prepare.key)} AS `{HASH}`", *names])
        return select(with_hash, ["*", *more]) if more else with_hash

    def _hash(self, names: Sequence[str]) -> str:
        """The hash of a key in these columns, as SQL; zero has one hash, whatever its sign."""
        hashed = []
        for name, field in zip(names, self.prepare.key, strict=True):
            kind = {pa.float32(): "float", pa.float64(): "double"}.get(self.prepare.rows.field(field).type)
            hashed.append(quoted(name) if kind is None else f"if({quoted(name)} = 0, {kind}(0), {quoted(name)})")
        return f"xxhash64({', '.join(hashed)})"


def _instance_of(owners: tuple[InstanceId, ...]) -> str:
    """The instance of a row, from its hash: one case for each arc of slices with the same owner."""
    ends = [s for s in range(1, len(owners) + 1) if s == len(owners) or owners[s] != owners[s - 1]]
    cases = " ".join(f"WHEN `{HASH}` & {len(owners) - 1} < {end} THEN {owners[end - 1]}" for end in ends)
    return f"CASE {cases} END AS {INSTANCE}"
