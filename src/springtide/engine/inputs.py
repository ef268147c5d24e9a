"""The sources of an app as one streaming DataFrame, so that all share one sequence of epochs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Source
from springtide.dataflow.kafka import MALFORMED
from springtide.dataflow.sources import CORRUPT, Files, Generator, Kafka, Streaming
from springtide.engine.files_source import files_stream
from springtide.engine.generator_source import generator_stream
from springtide.engine.kafka.source import kafka_stream
from springtide.engine.spark_internals import Mark, RowCounter
from springtide.engine.taken import Taken
from springtide.errors import BadType

TAG = "__source"


def open_source(spark: SparkSession, source: Source, *, placed: bool = False) -> DataFrame:
    """A source's streaming DataFrame; `placed`, with the column PLACE if equal rows could not be told apart."""
    try:
        frame = _open(spark, source, placed=placed and not source.spec.unique_rows)
    except Exception as error:
        raise StepFailed(source.name, "opening its source", str(error)) from error
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise StepFailed(source.name, "opening its source", f"expected a streaming DataFrame, got {frame!r}")
    return frame


def _open(spark: SparkSession, source: Source, *, placed: bool) -> DataFrame:
    spec = source.spec
    if isinstance(spec, Kafka):
        return kafka_stream(spark, source.name, spec, placed=placed)
    if isinstance(spec, Generator):
        return generator_stream(spark, spec.spec)
    if isinstance(spec, Streaming):
        return spec.open(spark)
    if isinstance(spec, Files):
        return files_stream(spark, source.name, spec, placed=placed)
    raise BadType(f"unknown kind of source {spec!r}")


@dataclass(frozen=True)
class Inputs:
    """All sources together, and how to tell them apart again in an epoch."""

    stream: DataFrame
    names: tuple[str, ...]
    counter: RowCounter | None = None
    """Counts an epoch's rows; None if the offsets of all sources tell how many there are."""

    @classmethod
    def open(cls, spark: SparkSession, graph: Graph) -> "Inputs":
        sources = graph.of(Source)
        frames = [open_source(spark, source, placed=graph.may_shed) for source in sources]
        # A generator's offset is a number of rows; those of others tell less, or nothing.
        counter = None if all(isinstance(source.spec, Generator) for source in sources) else RowCounter(spark)
        if len(frames) == 1:
            return cls(frames[0], (sources[0].name,), counter)
        tagged = [_tagged(frame, i, frames) for i, frame in enumerate(frames)]
        stream = tagged[0]
        for frame in tagged[1:]:
            stream = stream.unionByName(frame)
        return cls(stream, tuple(source.name for source in sources), counter)

    @property
    def several(self) -> bool:
        return len(self.names) > 1

    def counted(self, batch: DataFrame) -> tuple[DataFrame, Taken | None]:
        """An epoch's rows, and what is told of them once they have been read; None if nobody has to count."""
        if self.counter is None:
            return batch, None
        marks = self._malformed(batch)
        rows, told = self.counter.count(batch, len(self.names), marks)
        return rows, Taken(self.names, len(marks), told.lines)

    def _malformed(self, batch: DataFrame) -> tuple[Mark, ...]:
        """The columns that are not null in malformed records, of all sources that hand these on."""
        if not self.several:
            return _marks(batch.columns)
        found = []
        for place, column in enumerate(batch.schema):
            if isinstance(column.dataType, StructType):
                names = column.dataType.fieldNames()
                found += [replace(mark, struct=place, size=len(names)) for mark in _marks(names)]
        return tuple(found)

    def split(self, batch: DataFrame) -> dict[str, DataFrame]:
        """By source: its rows in an epoch."""
        if not self.several:
            return {self.names[0]: batch}
        return {
            name: batch.filter(F.col(TAG) == i).select(f"{_struct(i)}.*") for i, name in enumerate(self.names)
        }


def _marks(columns: Sequence[str]) -> tuple[Mark, ...]:
    return tuple(Mark(number) for number, name in enumerate(columns) if name in (CORRUPT, MALFORMED))


def _tagged(frame: DataFrame, index: int, frames: list[DataFrame]) -> DataFrame:
    """A source's rows in a struct of their own; the structs of the other sources are null."""
    columns: list[Column] = [F.lit(index).alias(TAG)]
    for i, other in enumerate(frames):
        value = F.struct(*[F.col(f"`{c}`") for c in frame.columns]) if i == index else F.lit(None).cast(other.schema)
        columns.append(value.alias(_struct(i)))
    return frame.select(*columns)


def _struct(index: int) -> str:
    return f"__source_{index}"
