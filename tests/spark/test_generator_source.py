"""The generator on Spark: every row once, whatever stops and restarts the query."""

import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

from springtide.connectors.generator.rates import constant
from springtide.connectors.generator.reader import FORMAT, GeneratorReader, generator_stream
from springtide.connectors.generator.rows import GeneratorSpec

DEADLINE_S = 120


class Sink:
    """Keeps the rows of each epoch; an epoch that comes again must bring the same rows."""

    def __init__(self, spec: GeneratorSpec) -> None:
        self._spec = spec
        self._changed = threading.Condition()
        self.epochs: dict[int, pa.Table] = {}
        self.fail_at: int | None = None

    def __call__(self, batch: DataFrame, epoch: int) -> None:
        rows = batch.toArrow().cast(self._spec.schema())
        with self._changed:
            assert self.epochs.setdefault(epoch, rows).equals(rows), f"epoch {epoch} changed in its replay"
            self._changed.notify_all()
        if epoch == self.fail_at:
            raise RuntimeError("the sink fails as the test asked for")

    def start(self, spark: SparkSession, checkpoint: Path, *, drain: bool = False) -> StreamingQuery:
        writer = generator_stream(spark, self._spec).writeStream.foreachBatch(self)
        writer = writer.trigger(availableNow=True) if drain else writer.trigger(processingTime="0 seconds")
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def drain(self, spark: SparkSession, checkpoint: Path) -> None:
        query = self.start(spark, checkpoint, drain=True)
        assert query.awaitTermination(DEADLINE_S), "the query with all that is available did not end"

    def wait_for_rows(self, rows: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: sum(self.sizes()) >= rows, DEADLINE_S), self.sizes()

    def sizes(self) -> list[int]:
        return [rows.num_rows for _, rows in sorted(self.epochs.items())]

    def rows(self) -> pa.Table:
        """All rows in order; one that came twice is in it twice."""
        return pa.concat_tables(self.epochs.values()).sort_by("id").combine_chunks()


def expected(spec: GeneratorSpec, start_s: float) -> pa.Table:
    assert spec.limit is not None
    return pa.Table.from_batches([spec.rows(0, spec.limit, start_s)])


def first_start_s(rows: pa.Table, spec: GeneratorSpec) -> float:
    """When the profile began, from the due time of row 0."""
    due_us = int(rows["due_time"].cast(pa.int64())[0].as_py())
    return due_us / 1e6 - float(spec.rate.due_at(np.array([0]))[0])


@pytest.mark.spark
def test_every_row_arrives_once_and_no_epoch_admits_more_than_allowed(spark: SparkSession, tmp_path: Path) -> None:
    spec = GeneratorSpec(constant(100_000), limit=2500, skew=1.0, disorder_s=3, start_s=1.7e9, max_rows_per_epoch=1000)
    sink = Sink(spec)
    sink.drain(spark, tmp_path)
    assert sink.sizes() == [1000, 1000, 500]
    assert sink.rows().equals(expected(spec, 1.7e9))


@pytest.mark.spark
def test_text_arrives_as_made(spark: SparkSession, tmp_path: Path) -> None:
    spec = GeneratorSpec(constant(100_000), limit=300, words_per_row=4, start_s=1.7e9, partitions=3)
    sink = Sink(spec)
    sink.drain(spark, tmp_path)
    assert sink.rows().equals(expected(spec, 1.7e9))


@pytest.mark.spark
def test_rows_come_as_they_fall_due_until_the_limit(spark: SparkSession, tmp_path: Path) -> None:
    spec = GeneratorSpec(constant(2000), limit=3000)
    sink, before_s = Sink(spec), time.time()
    query = sink.start(spark, tmp_path)
    try:
        sink.wait_for_rows(3000)
    finally:
        query.stop()
    start_s = first_start_s(sink.rows(), spec)
    assert before_s - 0.001 <= start_s <= time.time()
    assert sink.rows().equals(expected(spec, start_s))


@pytest.mark.spark
def test_a_restart_goes_on_without_a_gap_or_a_double(spark: SparkSession, tmp_path: Path) -> None:
    spec = GeneratorSpec(constant(20_000), limit=4000, max_rows_per_epoch=200)
    sink = Sink(spec)
    query = sink.start(spark, tmp_path)
    try:
        sink.wait_for_rows(1)
    finally:
        query.stop()
    assert sum(sink.sizes()) < 4000, "stopped too late to show anything"
    query = sink.start(spark, tmp_path)
    try:
        sink.wait_for_rows(4000)
    finally:
        query.stop()
    assert max(sink.sizes()) <= 200
    assert sink.rows().equals(expected(spec, first_start_s(sink.rows(), spec)))


@pytest.mark.spark
@pytest.mark.parametrize("failing", [0, 1])
def test_an_epoch_that_failed_is_replayed_with_its_own_rows(spark: SparkSession, tmp_path: Path, failing: int) -> None:
    # Before the first commit Spark asks for a new initial offset, hence a later start: it must not count.
    spec = GeneratorSpec(constant(1e6), limit=1000, max_rows_per_epoch=400)
    sink = Sink(spec)
    sink.fail_at = failing
    with pytest.raises(PySparkException, match="as the test asked for"):
        sink.start(spark, tmp_path).awaitTermination(DEADLINE_S)
    assert sink.sizes()[failing] > 0
    sink.fail_at = None
    query = sink.start(spark, tmp_path)
    try:
        sink.wait_for_rows(1000)
    finally:
        query.stop()
    assert sink.rows().equals(expected(spec, first_start_s(sink.rows(), spec)))


@pytest.mark.spark
def test_available_now_takes_what_is_due_and_ends(spark: SparkSession, tmp_path: Path) -> None:
    now_s = time.time()
    sink = Sink(GeneratorSpec(constant(1000), start_s=now_s - 2, max_rows_per_epoch=1500))
    sink.drain(spark, tmp_path)
    assert 2000 <= sum(sink.sizes()) <= 1000 * (time.time() - now_s + 2)
    assert sink.rows()["id"].to_pylist() == list(range(sum(sink.sizes())))


@pytest.mark.spark
def test_a_missing_spec_is_named(spark: SparkSession) -> None:
    generator_stream(spark, GeneratorSpec(constant(1)))
    with pytest.raises(PySparkException, match='needs option "spec"'):
        spark.readStream.format(FORMAT).load()


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_the_engine_may_ask_for_all_that_is_due_but_never_for_more() -> None:
    clock = Clock()
    reader = GeneratorReader(GeneratorSpec(constant(10), limit=95, max_rows_per_epoch=7), clock)
    start = reader.initialOffset()
    assert start == {"row": 0, "start_us": 1_000_000_000}
    clock.now_s += 5
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)
    assert reader.latestOffset(start, ReadMaxRows(7))["row"] == 7
    assert reader.latestOffset(start, ReadAllAvailable())["row"] == 50
    assert reader.reportLatestOffset() == {"row": 50, "start_us": 1_000_000_000}
    clock.now_s += 60
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, ReadAllAvailable())["row"] == 95


def test_a_clock_that_is_set_back_stalls_the_source_and_loses_nothing() -> None:
    clock = Clock()
    reader = GeneratorReader(GeneratorSpec(constant(10)), clock)
    start = reader.initialOffset()
    clock.now_s += 5
    reached = reader.latestOffset(start, ReadAllAvailable())
    clock.now_s -= 3600
    assert reader.latestOffset(reached, ReadAllAvailable()) == reached
    clock.now_s += 3601
    assert reader.latestOffset(reached, ReadAllAvailable())["row"] == 60


def test_after_a_restart_the_offset_alone_says_when_it_began() -> None:
    clock = Clock()
    restarted = GeneratorReader(GeneratorSpec(constant(10)), clock)
    assert restarted.reportLatestOffset() is None
    assert restarted.latestOffset({"row": 20, "start_us": 990_000_000}, ReadAllAvailable())["row"] == 100
    spans = restarted.partitions({"row": 0, "start_us": 999}, {"row": 3, "start_us": 5})
    assert [(span.start, span.end, span.start_us) for span in spans] == [(0, 1, 5), (1, 3, 5)]
