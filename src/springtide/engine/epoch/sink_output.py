"""An epoch's committed rows, as sinks see them."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from springtide.blocks.block import BlockRef
from springtide.connectors.parts import part_of
from springtide.engine.wire.commit_record import RECORD
from springtide.engine.worker.stateless import EachPart
from springtide.engine.worker.task_context import Storage


@dataclass(frozen=True)
class CommittedOutput:
    """A sink's rows of one epoch. Without steps in between, they are read from their blocks directly."""

    epoch: int
    sink: str
    key: tuple[str, ...]
    schema: pa.Schema
    frame: Callable[[], DataFrame]
    blocks: tuple[BlockRef, ...] | None
    storage: Storage
    lineage: str
    generation: int

    def dataframe(self) -> DataFrame:
        return self.frame()

    def table(self) -> pa.Table:
        if self.blocks is None:
            return self.frame().toArrow().cast(self.schema)
        opened = [self.storage.open().open(ref) for ref in self.blocks]
        return pa.concat_tables(opened) if opened else self.schema.empty_table()

    def top(self, column: str, n: int) -> pa.Table:
        if self.blocks is None:
            return self.frame().orderBy(F.desc(column)).limit(n).toArrow()
        rows = self.table()
        return rows.sort_by([(column, "descending")]).slice(0, n)

    def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
        rows = self.frame()
        if parts is not None:
            rows = rows.repartitionById(parts, F.expr(part_of(self.key, parts)))
        done = rows.mapInArrow(EachPart(function, self.schema), RECORD).collect()
        return [int(row.record) for row in done]
