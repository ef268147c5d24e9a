"""The DataFrames of one epoch: each step's rows, built once, from sources or from committed blocks."""

import threading
from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from springtide.blocks.block import BlockRef
from springtide.dataflow.graph import Keyed, Source
from springtide.dataflow.kafka import MALFORMED
from springtide.dataflow.sources import CORRUPT
from springtide.engine.bound import BoundGraph, build
from springtide.engine.inputs import Inputs
from springtide.engine.spark_internals import observed, spark_schema
from springtide.engine.staff import Staff
from springtide.engine.worker.rows import ReadBlocks
from springtide.ids import WorkerId


class EpochFrames:
    """Builds DataFrames on demand; rows that several steps read are kept until the epoch ends."""

    def __init__(self, bound: BoundGraph, inputs: Inputs, batch: DataFrame, staff: Staff) -> None:
        self.bound = bound
        self.staff = staff
        self.outputs: dict[str, tuple[BlockRef, ...]] = {}
        """By step: the blocks that hold its rows."""
        self._spark = batch.sparkSession
        self._kept: list[DataFrame] = []
        self._observed: list[Observation] = []
        self._lock = threading.RLock()
        self._frames: dict[str, DataFrame] = {}
        root = self._keep(batch) if inputs.several else batch
        self._sources = inputs.split(root)

    def __enter__(self) -> "EpochFrames":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()

    def restart(self) -> None:
        """Forget what was computed of the epoch: it is run anew."""
        with self._lock:
            self.outputs.clear()
            self._frames.clear()
            self._observed.clear()

    def input_of(self, step: str) -> DataFrame:
        """The rows that flow into a step."""
        return self.rows_of(self.bound.graph[step].parents[0])

    def rows_of(self, step: str) -> DataFrame:
        """The rows that flow out of a step."""
        with self._lock:
            if step not in self._frames:
                self._frames[step] = self._build(step)
            return self._frames[step]

    def committed(self, step: str) -> DataFrame:
        """The rows of a step, built from committed blocks only.

        A step that came into the app after the epoch was committed has none.
        """
        node = self.bound.graph[step]
        if step in self.outputs or isinstance(node, Source | Keyed):
            return self._from_blocks(step)
        return build(node, [self.committed(parent) for parent in node.parents])

    def dead_letters(self) -> int:
        """Malformed records seen while the epoch was computed."""
        return sum(observed(o, "malformed") for o in self._observed)

    def _build(self, step: str) -> DataFrame:
        node = self.bound.graph[step]
        if isinstance(node, Source):
            frame = self._without_corrupt(self._sources[step])
        elif isinstance(node, Keyed):
            return self._from_blocks(step)
        else:
            frame = build(node, [self.rows_of(parent) for parent in node.parents])
        shared = len(self.bound.graph.consumers[step]) > 1 and (
            isinstance(node, Source) or self.bound.graph.reads_sources(step)
        )
        return self._keep(frame) if shared else frame

    def _without_corrupt(self, frame: DataFrame) -> DataFrame:
        """Rows that fit the schema; the others are counted, and stay only if the app has a way for them."""
        if MALFORMED in frame.columns:
            return self._counted(frame, MALFORMED)
        if CORRUPT not in frame.columns:
            return frame
        return self._counted(frame, CORRUPT).filter(F.col(CORRUPT).isNull()).drop(CORRUPT)

    def _counted(self, frame: DataFrame, malformed: str) -> DataFrame:
        observation = Observation()
        self._observed.append(observation)
        return frame.observe(observation, F.count(F.col(malformed)).alias("malformed"))

    def _from_blocks(self, step: str) -> DataFrame:
        refs = self.outputs.get(step, ())
        schema: pa.Schema = self.bound.schemas[step]
        if not refs:
            return self._spark.createDataFrame([], spark_schema(schema))
        parts = self._spark.range(0, len(refs), 1, len(refs))
        placed = self.staff.place(parts, [WorkerId(ref.worker) for ref in refs])
        return placed.mapInArrow(ReadBlocks(refs, self.staff.storage), spark_schema(schema))

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept


