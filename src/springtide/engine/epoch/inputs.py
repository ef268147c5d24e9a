"""The sources of an app as one streaming DataFrame, so that all share one sequence of epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from springtide.connectors.open_source import OpenSource
from springtide.connectors.record_place import PLACE
from springtide.dataflow.errors import StepFailed
from springtide.dataflow.graph import Graph, Source
from springtide.dataflow.source_spec import CORRUPT, MALFORMED
from springtide.engine.shedding.rows_taken import Taken
from springtide.engine.shedding.sampler import LOT, below, lot
from springtide.engine.spark.internals import Mark, RowCounter, SourceRows, select
from springtide.ids import Epoch

TAG = "__source"


def open_source(spark: SparkSession, source: Source, *, placed: bool = False) -> OpenSource:
    """A source, ready to be read; `placed`, with the column PLACE in its records, by which they are shed."""
    try:
        found = source.spec.open(spark, source.name, placed=placed)
    except Exception as error:
        raise StepFailed(source.name, "opening its source", str(error)) from error
    if not isinstance(found.records, DataFrame) or not found.records.isStreaming:
        raise StepFailed(source.name, "opening its source", f"expected a streaming DataFrame, got {found.records!r}")
    return found


@dataclass(frozen=True)
class Inputs:
    """All sources together, and how to tell them apart again in an epoch.

    In an app that may shed, the stream has records as the scans give them: what is shed is shed before it is decoded.
    """

    stream: DataFrame
    opened: Mapping[str, OpenSource]
    """By source, in their order."""
    sheds: bool
    counter: RowCounter | None = None
    """Counts an epoch's rows; None if the offsets of all sources tell how many there are."""
    marking: frozenset[str] = frozenset()
    """The sources whose rows say in a column whether they fit the schema."""
    apart: SourceRows | None = None
    """Reads the rows of each source alone; None if there is only one, or if records are shed on the way."""

    @classmethod
    def open(cls, spark: SparkSession, graph: Graph) -> "Inputs":
        sources = graph.of(Source)
        opened = {source.name: open_source(spark, source, placed=graph.may_shed) for source in sources}
        frames = [each.records if graph.may_shed else each.rows for each in opened.values()]
        told = all(source.spec.counts_rows for source in sources) and not graph.may_shed
        counter = None if told else RowCounter(spark)
        stream = frames[0]
        if len(frames) > 1:
            stream, *others = (_tagged(frame, i, frames) for i, frame in enumerate(frames))
            for frame in others:
                stream = stream.unionByName(frame)
        apart = SourceRows(spark) if len(frames) > 1 and not graph.may_shed else None
        marking = frozenset(name for name, each in opened.items() if CORRUPT in each.rows.columns)
        return cls(stream, opened, graph.may_shed, counter, marking, apart)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.opened)

    @property
    def several(self) -> bool:
        return len(self.names) > 1

    def counted(self, batch: DataFrame) -> tuple[DataFrame, Taken | None]:
        """An epoch's rows, and what is told of them once they have been read; None if nobody has to count."""
        if self.counter is None:
            return batch, None
        # In an app that may shed, malformed records are counted behind the scan, with those that were kept.
        marks = () if self.sheds else self._malformed(batch)
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

    def split(self, batch: DataFrame, *also: str) -> dict[str, DataFrame]:
        """By source: its rows in an epoch, or its records in an app that may shed; with columns of the epoch."""
        if not self.several:
            return {self.names[0]: batch}
        return {
            name: batch.filter(F.col(TAG) == i).select(f"{_struct(i)}.*", *also) for i, name in enumerate(self.names)
        }

    def each(self, batch: DataFrame, giving: Sequence[int]) -> dict[str, DataFrame] | None:
        """As `split`, but the rows of each source are read without those of the others.

        `giving` are the numbers of the sources that have rows in this epoch. None if that can't be done.
        """
        if self.apart is None or (found := self.apart.of(batch, giving)) is None:
            return None
        nothing = self.apart.none(batch)
        return {name: select(found.get(i, nothing), [f"{_struct(i)}.*"]) for i, name in enumerate(self.names)}

    def rows(self, batch: DataFrame) -> dict[str, DataFrame]:
        """By source: its rows, with nothing shed."""
        found = self.split(batch)
        return {name: self.opened[name].decode(found[name], ()) for name in found} if self.sheds else found

    def fitting(self, source: str, rows: DataFrame) -> DataFrame:
        """Of a source's rows, those that fit its schema, with its columns alone.

        The others stay only if the app has a way for them.
        """
        return rows.filter(F.col(CORRUPT).isNull()).drop(CORRUPT) if source in self.marking else rows

    def scanned(self, batch: DataFrame, epoch: Epoch, most: Mapping[str, float]) -> DataFrame:
        """The records that somebody wants, each with its lot; by source, `most` is the largest share of all.

        The text of the expressions is that of other epochs, as far as it can be: Spark compiles each new one.
        """
        lots = []
        for i, (name, source) in enumerate(self.opened.items()):
            place = f"{_struct(i)}.{PLACE}" if self.several else PLACE
            lots.append(lot(name, place, *([f"{epoch}L"] if source.recurring else [])))
        rows = batch.selectExpr("*", f"{_by_source(lots)} AS {LOT}")
        return rows.filter(_by_source([below(most[name]) for name in self.names]))


def _by_source(expressions: Sequence[str]) -> str:
    """The expression of a record's source, in SQL."""
    if len(expressions) == 1:
        return expressions[0]
    cases = " ".join(f"WHEN {i} THEN {expression}" for i, expression in enumerate(expressions))
    return f"CASE {TAG} {cases} END"


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
