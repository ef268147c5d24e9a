"""The generator as a Spark source: rows fall due by the wall clock whether or not Spark keeps up.

An offset is ``{"row": n, "start_us": t}``: the rows before ``n`` are done, and the profile began at
``t``. The start travels in the offset, so a query restarted from its checkpoint owes the rows of the time
it was down and gives every row the due time it would have had anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from springtide.connectors.generator.rows import GeneratorSpec, split

FORMAT = "springtide-generator"
_BATCH_ROWS = 65_536


Offset = dict[str, int]


def offset(row: int, start_us: int) -> Offset:
    """Spark compares offsets as JSON text: they are built here only, with the keys in this order."""
    return {"row": row, "start_us": start_us}


@dataclass(frozen=True)
class RowSpan(InputPartition):
    """The rows one task makes."""

    start: int
    end: int
    start_us: int


def generator_stream(spark: SparkSession, spec: GeneratorSpec) -> DataFrame:
    """A streaming DataFrame of the rows of ``spec``. Runs on the driver; registers the source on the way."""
    spark.dataSource.register(GeneratorSource)
    return spark.readStream.format(FORMAT).option("spec", spec.to_json()).load()


class GeneratorSource(DataSource):
    """``spark.readStream.format("springtide-generator").option("spec", GeneratorSpec(...).to_json())``.

    Streaming only. Runs in Spark's planner processes beside the driver; workers need this package too.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return self._spec().ddl()

    def streamReader(self, schema: StructType) -> GeneratorReader:
        return GeneratorReader(self._spec())

    def _spec(self) -> GeneratorSpec:
        if "spec" not in self.options:
            raise ValueError(f'the source {FORMAT} needs option "spec": GeneratorSpec(...).to_json()')
        return GeneratorSpec.from_json(self.options["spec"])


class GeneratorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what is due and makes it.

    All but ``read`` run in one Python process beside the driver, which lives as long as the query;
    ``read`` runs in the tasks, on a copy of the reader, and uses the spec alone.
    """

    def __init__(self, spec: GeneratorSpec, clock: Callable[[], float] = time.time) -> None:
        self._spec = spec
        self._clock = clock
        self._start_us: int | None = None
        self._closes_s: float | None = None

    def initialOffset(self) -> Offset:
        """Row 0, and the start: fixed at the first call, because Spark asks several times."""
        if self._start_us is None:
            start_s = self._clock() if self._spec.start_s is None else self._spec.start_s
            self._start_us = round(start_s * 1e6)
        return offset(row=0, start_us=self._start_us)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The admission limit of the spec."""
        most = self._spec.max_rows_per_epoch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on only what is due at this moment counts, so that the query ends.

        A new query whose spec leaves ``start_s`` open starts now, so nothing is due yet and it ends empty.
        """
        self._closes_s = self._clock()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As far as is due, within the limit; never back, even if the clock is set back."""
        self._start_us = start["start_us"]
        row = max(self._due_rows(self._start_us), start["row"])
        if isinstance(limit, ReadMaxRows):
            row = min(row, start["row"] + limit.max_rows)
        return offset(row=row, start_us=self._start_us)

    def reportLatestOffset(self) -> Offset | None:
        """What is due, admitted or not: Spark shows it in the progress, the difference is the backlog."""
        if self._start_us is None:
            return None
        return offset(row=self._due_rows(self._start_us), start_us=self._start_us)

    def partitions(self, start: Offset, end: Offset) -> Sequence[RowSpan]:
        """The rows of one epoch, cut into spans.

        The start time is taken from ``end``: if the first epoch is replayed after a crash, ``start`` is a
        new initial offset of a later moment, while ``end`` comes from the offset log.
        """
        self._start_us = end["start_us"]
        spans = split(start["row"], end["row"], self._spec.partitions)
        return [RowSpan(first, last, end["start_us"]) for first, last in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one span, in batches. Runs on a worker."""
        if not isinstance(partition, RowSpan):
            raise TypeError(f"the source {FORMAT} reads spans of its own, got {partition!r}")
        batch_rows = max(_BATCH_ROWS // max(self._spec.words_per_row, 1), 1)
        for start in range(partition.start, partition.end, batch_rows):
            end = min(start + batch_rows, partition.end)
            yield self._spec.rows(start, end, partition.start_us / 1e6)

    def _due_rows(self, start_us: int) -> int:
        now_s = self._clock() if self._closes_s is None else self._closes_s
        return self._spec.due_rows(now_s - start_us / 1e6)
